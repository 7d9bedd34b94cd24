"""The judge that asks a language model, through LiteLLM."""

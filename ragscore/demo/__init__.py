"""What `ragscore demo` evaluates: a real corpus, labelled questions about it, and a retriever in two versions."""

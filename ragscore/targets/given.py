"""The target `none`: what was answered and retrieved stands in the dataset already, and nothing is called."""

from __future__ import annotations

from ragscore.items import Item, Response
from ragscore.targets.messages import answer_of, messages_of, since_the_question
from ragscore.targets.shapes import jsonable


class GivenTarget:
    """Answers with the item's own output and contexts, in no time; `raw` is the rest of its row, for extractors."""

    def __init__(self, *, need_raw: bool = False) -> None:
        self._need_raw = need_raw

    async def invoke(self, item: Item) -> Response:
        """The item's own output and contexts; never fails."""
        output = item.output
        raw = None
        if self._need_raw:
            texts = None if item.contexts is None else [jsonable(context) for context in item.contexts]
            raw = {**jsonable(item.metadata), "output": output, "contexts": texts}
            if "output_messages" in raw:
                raw["messages"] = raw.pop("output_messages")
            messages = messages_of(raw)
            if output is None and messages is not None:
                output = answer_of(since_the_question(messages))
        return Response(output=output, contexts=item.contexts, raw=raw)

"""`embed_documents`: split and embed documents (CO-4)."""

from typing import Any, ClassVar

from pydantic import BaseModel

from internal_flows.stages import InternalFlow, Options, RunContext, before_all_response, redo_run, skip
from orchestrator.errors import NotFound
from orchestrator.types import Json, TenantId

BATCH = 100


class ToEmbed(BaseModel):
    """A document to embed. `tenant_id`: the document's tenant. Default: the run's tenant."""

    document_id: str
    tenant_id: TenantId | None = None


class EmbedDocuments(InternalFlow):
    """A flow that splits and embeds documents.

    After an upload, it embeds the uploaded documents. On schedule, it embeds up to `BATCH` documents that are
    missing from the current embedding space, and requests a rerun after a full batch.
    """

    name: ClassVar[str] = "embed_documents"
    trigger: ClassVar[str] = "embed_documents"
    tools: ClassVar[tuple[str, ...]] = ("context",)
    input_type: ClassVar[Any] = ToEmbed
    options: ClassVar[Options] = Options(concurrency=2, timeout_s=120)

    async def before_all(self, run: RunContext) -> Any:
        if "job" not in run.parameters:
            return None
        context = run.tools["context"]
        due = await context.documents.unembedded(context.space, limit=BATCH)
        inputs = [{"tenant_id": tenant_id, "document_id": document_id} for tenant_id, document_id in due]
        return before_all_response(inputs=inputs, data={"full": len(due) == BATCH})

    async def data(self, run: RunContext, item: ToEmbed) -> Any:
        """Skip other tenants' documents, except in scheduled runs."""
        foreign = item.tenant_id not in {None, run.tenant_id} and "job" not in run.parameters
        return skip("The document belongs to another tenant.") if foreign else item

    async def work(self, run: RunContext, item: ToEmbed, data: Json) -> Json:
        try:
            return await run.tools["context"].embed(item.tenant_id or run.tenant_id, item.document_id)
        except NotFound:
            return None

    async def output(self, run: RunContext, item: ToEmbed, data: Json, result: Json) -> Any:
        if result is None:
            return skip("The document was changed or deleted in the meantime.")
        return {"document_id": item.document_id, "chunks": result}

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Any:
        done = sum(output is not None for output in outputs)
        if run.data is not None and run.data["full"] and done:
            return redo_run()
        return {"embedded": done}

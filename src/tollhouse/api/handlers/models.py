"""Models: read one, list those that the caller may use."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.handlers.count_tokens import check_messages_head
from tollhouse.base.money import to_decimal_string
from tollhouse.catalog import pricing, rules, service
from tollhouse.catalog.types import Catalog, Model, Pricing
from tollhouse.contract import models as models_wire
from tollhouse.contract.listing import NoQuery
from tollhouse.keys.types import Customer


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelHandlers:
    """Handlers of the operations on models. `is_model_ready` takes the ID of a model."""

    catalog: Catalog
    is_model_ready: Callable[[str], bool]

    async def retrieve(self, call: OperationCall[Customer, None, NoQuery]) -> OperationAnswer:
        """GET /v1/models/{model}"""
        model_id = call.path["model"]
        model = service.find(self.catalog, model_id, allowed_models=call.caller.allowed_models)
        return OperationAnswer(body=self._shown(model_id, model, call.caller.granted_checks))

    async def list_(self, call: OperationCall[Customer, None, NoQuery]) -> OperationAnswer:
        """GET /v1/models"""
        data = self.shown(
            granted_checks=call.caller.granted_checks, allowed_models=call.caller.allowed_models
        )
        return OperationAnswer(body=models_wire.ModelList(data=data))

    async def retrieve_messages(
        self, call: OperationCall[Customer, None, NoQuery]
    ) -> OperationAnswer:
        """GET /compat/anthropic/v1/models/{model}"""
        check_messages_head(call.head)
        model_id = call.path["model"]
        model = service.find(self.catalog, model_id, allowed_models=call.caller.allowed_models)
        return OperationAnswer(body=_messages_model(model_id, model))

    async def list_messages(self, call: OperationCall[Customer, None, NoQuery]) -> OperationAnswer:
        """GET /compat/anthropic/v1/models"""
        check_messages_head(call.head)
        offered = service.offered(self.catalog, allowed_models=call.caller.allowed_models)
        data = [_messages_model(model_id, model) for model_id, model in offered]
        return OperationAnswer(
            body=models_wire.MessagesModelList(
                data=data,
                first_id=data[0].id if data else None,
                last_id=data[-1].id if data else None,
            )
        )

    def shown(
        self, *, granted_checks: frozenset[str], allowed_models: frozenset[str] | None
    ) -> list[models_wire.Model]:
        """Return the allowed models, each with the checks that it lacks; None allows all."""
        offered = service.offered(self.catalog, allowed_models=allowed_models)
        return [self._shown(model_id, model, granted_checks) for model_id, model in offered]

    def _shown(
        self, model_id: str, model: Model, granted_checks: frozenset[str]
    ) -> models_wire.Model:
        return models_wire.Model(
            id=model_id,
            created=model.created,
            owned_by=model.owned_by,
            name=model_id,
            display_name=model.display_name or model_id,
            access=_access(model, granted_checks),
            input_modalities=list(model.input_modalities),
            output_modalities=list(model.output_modalities),
            pricing=_pricing(model.pricing),
            supported_sampling_parameters=sorted(model.sampling_parameters),
            sampling_limits=model.sampling_limits,
            sampling_limits_revision=rules.limits_revision(model),
            supported_features=sorted(model.features),
            is_ready=self.is_model_ready(model_id),
            quantization=model.quantization,
            context_length=model.context_length,
            max_output_length=model.max_output_length,
            root=model.root or model_id,
            parent=model.parent,
        )


def _messages_model(model_id: str, model: Model) -> models_wire.MessagesModel:
    return models_wire.MessagesModel(
        id=model_id,
        display_name=model.display_name or model_id,
        created_at=datetime.fromtimestamp(model.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        max_input_tokens=model.context_length,
        max_tokens=model.max_output_length,
    )


def _access(model: Model, granted_checks: frozenset[str]) -> models_wire.ModelAccess:
    is_locked, missing = service.access(model, granted_checks)
    return models_wire.ModelAccess(
        required_checks=list(model.required_checks),
        available=not is_locked,
        locked=is_locked,
        missing_requirements=list(missing),
    )


def _pricing(written: Pricing) -> models_wire.ModelPricing:
    """Return the prices as decimal strings in the form of all amounts."""
    prices = pricing.unit_prices(written)
    return models_wire.ModelPricing(
        prompt=to_decimal_string(prices.prompt_pico_usd),
        completion=to_decimal_string(prices.completion_pico_usd),
        image=to_decimal_string(prices.image_pico_usd),
        request=to_decimal_string(prices.request_pico_usd),
        input_cache_read=to_decimal_string(prices.input_cache_read_pico_usd),
    )

"""JSON Schemas of the objects that Kubernetes does not know by itself, closed around the fields that we use.

The resource definitions of KEDA and of the Prometheus operator allow more; these find a field that is misspelt, missing
or of another type. Duration and quantity are the operators' own notations.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

NAME: Schema = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
TEXT: Schema = {"type": "string", "minLength": 1}
SECONDS: Schema = {"type": "integer", "minimum": 1}
DURATION: Schema = {"type": "string", "pattern": r"^\d+(ms|s|m|h)$"}
LABELS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
EXPRESSION: Schema = {
    "type": "object",
    "properties": {
        "key": TEXT,
        "operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
        "values": {"type": "array", "items": TEXT},
    },
    "required": ["key", "operator"],
    "additionalProperties": False,
}


def closed(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def some(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


def custom(version: str, kind: str, spec: Schema) -> Schema:
    metadata = closed({"name": NAME, "namespace": NAME}, {"labels": LABELS})
    return closed(
        {"apiVersion": {"const": version}, "kind": {"const": kind}, "metadata": metadata, "spec": spec}
    )


POLICY = closed({"type": {"enum": ["Pods", "Percent"]}, "value": SECONDS, "periodSeconds": SECONDS})
SCALING = closed(
    {}, {"policies": some(POLICY), "stabilizationWindowSeconds": {"type": "integer", "minimum": 0}}
)
TRIGGER = closed(
    {"type": {"enum": ["redis", "postgresql", "rabbitmq", "cpu"]}, "name": NAME, "metadata": LABELS},
    {
        "authenticationRef": closed({"name": NAME}),
        "metricType": {"enum": ["Utilization", "AverageValue", "Value"]},
    },
)
BEHAVIOUR = closed({}, {"scaleUp": SCALING, "scaleDown": SCALING})
SCALED_OBJECT = closed(
    {"scaleTargetRef": closed({"name": NAME}), "triggers": some(TRIGGER)},
    {
        "pollingInterval": SECONDS,
        "cooldownPeriod": SECONDS,
        "minReplicaCount": {"type": "integer", "minimum": 0},
        "maxReplicaCount": SECONDS,
        "advanced": closed({"horizontalPodAutoscalerConfig": closed({"behavior": BEHAVIOUR})}),
    },
)
TRIGGER_AUTHENTICATION = closed(
    {"secretTargetRef": some(closed({"parameter": TEXT, "name": NAME, "key": TEXT}))},
)
SELECTOR = closed({}, {"matchLabels": LABELS, "matchExpressions": some(EXPRESSION)})
SECRET_KEY = closed({"name": NAME, "key": TEXT})
ENDPOINT = closed(
    {"port": NAME, "path": TEXT, "interval": DURATION},
    {"authorization": closed({"type": {"const": "Bearer"}, "credentials": SECRET_KEY})},
)
RULE = closed(
    {"alert": TEXT, "expr": TEXT, "for": DURATION, "labels": LABELS, "annotations": LABELS},
)

SCHEMAS: dict[str, Schema] = {
    "ScaledObject": custom("keda.sh/v1alpha1", "ScaledObject", SCALED_OBJECT),
    "TriggerAuthentication": custom("keda.sh/v1alpha1", "TriggerAuthentication", TRIGGER_AUTHENTICATION),
    "ServiceMonitor": custom(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        closed({"selector": SELECTOR, "endpoints": some(ENDPOINT)}),
    ),
    "PodMonitor": custom(
        "monitoring.coreos.com/v1",
        "PodMonitor",
        closed({"selector": SELECTOR, "podMetricsEndpoints": some(ENDPOINT)}),
    ),
    "PrometheusRule": custom(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        closed({"groups": some(closed({"name": NAME, "rules": some(RULE)}))}),
    ),
}

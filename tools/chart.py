# SPDX-License-Identifier: Apache-2.0
"""Makes the Helm chart from what kustomize renders, so that there is no second truth.

charts/flamefleet has what only a chart has: values, their schema's frame, notes. The templates are the objects of
config/default and of its components, in which a few fields are replaced by values; the schemas of agentPool.spec and
backend.spec are those of the CRDs.
"""

import json
import re
import shutil

import yaml

NAMESPACE = "flamefleet-system"
STARTER = "flamefleet-starter"  # its ConfigMap has the objects that its Job creates; a chart has them as templates
SCHEMA_NOISE = re.compile(r"x-kubernetes-.*|default|nullable|format|example")


def identity(item):
    return item["kind"], item["metadata"]["name"]


def dump(item):
    return yaml.safe_dump(item, sort_keys=False, width=10000)


class Template:
    """An object in which fields are replaced by text of a Helm template."""

    def __init__(self, item):
        self.item = json.loads(json.dumps(item))
        self._texts = []

    def expression(self, text):
        """A scalar: the token to put in its place."""
        self._texts.append(text)
        return f"FF{len(self._texts) - 1}FF"

    def add(self, parent, text):
        """Adds lines of a template to a mapping or a list; INDENT is the number of blanks before them."""
        token = self.expression(text)
        if isinstance(parent, list):
            parent.append(token)
        else:
            parent[token] = None

    def add_value(self, parent, key, value):
        """The field `key` with .Values.`value`, unless that is empty."""
        self.add(parent, f"{{{{- with .Values.{value} }}}}\n{key}:\n  {{{{- toYaml . | nindent INDENT+2 }}}}\n{{{{- end }}}}")

    def text(self):
        literal = dump(self.item).replace("{{", '{{ "{{" }}')  # alerts have templates of their own
        lines = []
        for line in literal.splitlines():
            block = re.fullmatch(r"( *)(?:- )?FF(\d+)FF(?:: null)?", line)
            lines += self._block(block[1], self._texts[int(block[2])]) if block else [self._scalars(line)]
        return "\n".join(lines) + "\n"

    @staticmethod
    def _block(indent, text):
        for line in text.splitlines():
            line = re.sub(r"INDENT(?:\+(\d+))?", lambda found: str(len(indent) + int(found[1] or 0)), line)
            yield line if line.startswith("{{-") else indent + line

    def _scalars(self, line):
        return re.sub(r"FF(\d+)FF", lambda found: self._texts[int(found[1])], line)


def _move_to_release_namespace(template):
    def walk(node):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, (dict, list)):
                walk(value)
            elif value == NAMESPACE:
                node[key] = template.expression("{{ .Release.Namespace | quote }}")
    walk(template.item)


def _parametrize_operator(template, available):
    """`available` is the same Deployment with the component high-availability."""
    spec, several = template.item["spec"], available["spec"]
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    spec["replicas"] = template.expression("{{ .Values.operator.replicas }}")
    container["image"] = template.expression('{{ include "flamefleet.image" . | quote }}')
    template.add(container, '{{- with .Values.image.pullPolicy }}\nimagePullPolicy: {{ . }}\n{{- end }}')
    template.add(container["args"], '{{- with .Values.watchNamespaces }}\n'
                                    '{{- range without . $.Release.Namespace }}\n'
                                    '- --watch-namespace={{ . }}\n{{- end }}\n'
                                    '- --watch-namespace=$(FLAMEFLEET_NAMESPACE)\n{{- end }}')
    template.add(container["args"], '{{- if ne .Values.operator.logLevel "info" }}\n'
                                    '- --log-level={{ .Values.operator.logLevel }}\n{{- end }}')
    del container["resources"]
    template.add_value(container, "resources", "operator.resources")
    template.add_value(pod, "imagePullSecrets", "image.pullSecrets")
    for field in ("priorityClassName", "nodeSelector", "tolerations", "affinity"):
        template.add_value(pod, field, f"operator.{field}")
    spread = dump({"topologySpreadConstraints": several["template"]["spec"]["topologySpreadConstraints"]})
    template.add(pod, "{{- if gt (int .Values.operator.replicas) 1 }}\n" + spread + "{{- end }}")
    template.add(spec["template"]["metadata"]["annotations"],
                 "{{- with .Values.operator.podAnnotations }}\n{{- toYaml . | nindent INDENT }}\n{{- end }}")


def _add_watched_namespaces(folder, item):
    """The RoleBinding of each namespace whose pods the operator watches, in place of that of its own."""
    template = Template(item)
    template.item["metadata"]["namespace"] = template.expression("{{ . | quote }}")
    template.item["subjects"][0]["namespace"] = template.expression("{{ $.Release.Namespace | quote }}")
    (folder / "templates" / "rolebinding_watched_namespaces.yaml").write_text(
        "{{- with .Values.watchNamespaces }}\n{{- range append . $.Release.Namespace | uniq }}\n---\n"
        f"{template.text()}{{{{- end }}}}\n{{{{- end }}}}\n")


def _starter_template(item, value):
    """What a cluster begins with: as it is, or with the user's spec in place of ours. The default backend stays that unless the
    spec says no: without any, nothing is profiled."""
    spec = item.pop("spec")
    own = dump({"spec": spec})
    stays = f'{{{{- if not (hasKey .Values.{value}.spec "default") }}}}\n  default: true\n  {{{{- end }}}}\n' if "default" in spec else ""
    return (f"{{{{- if .Values.{value}.create }}}}\n{dump(item)}{{{{- if .Values.{value}.spec }}}}\nspec:\n"
            f"  {stays}  {{{{- toYaml .Values.{value}.spec | nindent 2 }}}}\n{{{{- else }}}}\n{own}{{{{- end }}}}\n{{{{- end }}}}\n")


def closed_schema(schema):
    """The part of a CRD's schema that Helm understands, in which fields that are not there are refused."""
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string", "number"]}
    kept = {key: value for key, value in schema.items() if not SCHEMA_NOISE.fullmatch(key)}
    if "properties" in kept:
        kept["properties"] = {name: closed_schema(child) for name, child in kept["properties"].items()}
        kept["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = closed_schema(kept[key])
    return kept


def _values_schema(source, crds):
    schema = json.loads(source.read_text())
    for value, plural in (("agentPool", "agentpools"), ("backend", "profilingbackends")):
        crd = crds[f"{plural}.flamefleet.dev"]
        spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        # Empty stands for our own spec, whatever a spec must have.
        schema["properties"][value]["properties"]["spec"] = {"if": {"minProperties": 1}, "then": closed_schema(spec)}
    return json.dumps(schema, indent=2) + "\n"


def write(folder, source, version, image, render):
    """Writes the chart into `folder`. `render` is a function: components of config/ -> objects."""
    shutil.copytree(source, folder)
    values = folder / "values.yaml"
    values.write_text(values.read_text().replace("repository: flamefleet\n", f"repository: {image}\n"))
    header = yaml.safe_load((folder / "Chart.yaml").read_text())
    (folder / "Chart.yaml").write_text(dump({**header, "version": version, "appVersion": version}))

    objects = {identity(item): item for item in render()}
    available = {identity(item): item for item in render("high-availability")}
    crds = {name: item for (kind, name), item in objects.items() if kind == "CustomResourceDefinition"}
    (folder / "crds").mkdir()
    for name, item in crds.items():
        # `helm show crds` joins the files as they are.
        (folder / "crds" / f"{name.partition('.')[0]}.yaml").write_text("---\n" + dump(item))
    (folder / "values.schema.json").write_text(_values_schema(source / "values.schema.json", crds))

    def add(item, condition="", edit=lambda template: None):
        template = Template(item)
        _move_to_release_namespace(template)
        edit(template)
        text = template.text()
        if condition:
            text = f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"
        kind, name = identity(item)
        (folder / "templates" / f"{kind.lower()}_{name}.yaml").write_text(text)

    operator, of_cluster = ("Deployment", "flamefleet-operator"), ("ClusterRoleBinding", "flamefleet-operator-pods")
    for key, item in objects.items():
        if item["kind"] in ("CustomResourceDefinition", "Namespace") or key[1] == STARTER:
            continue
        add(item, "not .Values.watchNamespaces" if key == of_cluster else "",
            edit=lambda template: _parametrize_operator(template, available[operator]) if key == operator else None)
    for component, condition in (("high-availability", "gt (int .Values.operator.replicas) 1"),
                                 ("prometheus", ".Values.prometheus.enabled"),
                                 ("network-policy", ".Values.networkPolicy.enabled"),
                                 ("namespaced", ".Values.watchNamespaces")):
        for item in render(component):
            if identity(item) == ("RoleBinding", "flamefleet-operator-pods"):
                _add_watched_namespaces(folder, item)
            elif identity(item) not in objects:
                label = component == "prometheus"
                add(item, condition, lambda template: template.add(
                    template.item["metadata"]["labels"],
                    "{{- with .Values.prometheus.labels }}\n{{- toYaml . | nindent INDENT }}\n{{- end }}") if label else None)
    for file, text in objects["ConfigMap", STARTER]["data"].items():
        item = yaml.safe_load(text)
        value = {"AgentPool": "agentPool", "ProfilingBackend": "backend"}[item["kind"]]
        (folder / "templates" / file).write_text(_starter_template(item, value))

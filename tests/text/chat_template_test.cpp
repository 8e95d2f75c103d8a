#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <chrono>

#include "rlx/error.h"

namespace rlx {
namespace {

std::string message_of(const std::string& source) {
  try {
    ChatTemplate(source).render({{"user", "x"}}, {});
  } catch (const Error& e) {
    EXPECT_EQ(e.message().find('\n'), std::string::npos) << e.message();
    return e.message();
  }
  return "";
}

TEST(ChatTemplate, WritesAConversation) {
  const ChatTemplate chat(
      "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{{ eos_token }}\n{% endfor %}{% if "
      "add_generation_prompt %}<|assistant|>{% endif %}");
  EXPECT_EQ(
      chat.render({{"user", " Hi "}, {"assistant", "Hello"}}, {.add_generation_prompt = true, .eos_token = "</s>"}),
      "<|user|>Hi</s>\n<|assistant|>Hello</s>\n<|assistant|>");
  EXPECT_EQ(chat.render_json(R"([{"role": "user", "content": "a"}])", {}), "<|user|>a\n");
}

TEST(ChatTemplate, SeesVariables) {
  const ChatTemplate chat("{{ enable_thinking }} {{ tools | tojson }} {{ nothing is defined }}");
  EXPECT_EQ(chat.render({}, {.variables_json = R"({"enable_thinking": false, "tools": [{"b": 1, "a": "ä"}]})"}),
            R"(False [{"b": 1, "a": "ä"}] False)");
}

TEST(ChatTemplate, ErrorsNameTheLine) {
  EXPECT_EQ(message_of("a\n{% if %}"), "Line 2 of the chat template: An expression is missing.");
  EXPECT_EQ(message_of("{% for m in messages %}\n\n{{ m.x.y }}{% endfor %}"),
            "Line 3 of the chat template: 'dict.x' is undefined.");
  EXPECT_EQ(message_of("{{ raise_exception('Only user messages.') }}"),
            "Line 1 of the chat template: The chat template refuses the messages: Only user messages.");
  EXPECT_NE(message_of("\xFF"), "");
}

TEST(ChatTemplate, WhatDoesNotEndIsAnError) {
  EXPECT_NE(message_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "");
  EXPECT_NE(message_of("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"), "");
  EXPECT_NE(message_of("{{ 'x' * 99999999999 }}"), "");
  EXPECT_NE(message_of("{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}"),
            "");
  EXPECT_NE(message_of(std::string(5000, '(')), "never a template error: plain text");
  EXPECT_EQ(ChatTemplate(std::string(5000, '(')).render({}, {}), std::string(5000, '('));
  EXPECT_NE(message_of("{{ " + std::string(5000, '(')), "");
}

// Few statements, each of them much work: what is copied, compared, searched or written counts, whatever its size.
TEST(ChatTemplate, MuchWorkIsAnErrorSoon) {
  const std::string large = "{% set L = range(99999)|list %}{% set S = 'ab' * 5000000 %}";
  const std::string twice =
      "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}";
  const auto often = [&](const std::string& work) {
    return large + "{% for a in L %}{% for b in L %}" + work + "{% endfor %}{% endfor %}";
  };
  for (const std::string& source : {often("{% set x = S %}"),
                                    often("{% set x = [S, L] %}"),
                                    often("{% set x = L == L %}"),
                                    often("{% set x = S < S %}"),
                                    often("{% set x = S is sameas S %}"),
                                    often("{% set x = S[5] %}"),
                                    often("{% set x = S|last %}"),
                                    often("{% set x = S.title() %}"),
                                    often("{% for c in S %}{% endfor %}"),
                                    often("{% macro m(q) %}{% endmacro %}{% set x = m(S) %}"),
                                    often("{% set x = {'a': S} %}"),
                                    large + "{% set x = [S] * 200001 %}",
                                    large + "{% set x = ([S] * 200000)|sort %}",
                                    large + "{{ ([S] * 200000)|join }}",
                                    large + "{{ ([S] * 200000)|tojson }}",
                                    large + "{{ S ~ ([S] * 9999) }}",
                                    large + "{{ (S ~ 'a' in S) }}{{ S.find('ab' * 2500000 ~ 'c') }}",
                                    large + "{{ S.strip(S) }}",
                                    large + "{{ ('\n' * 5000000)|indent(S) }}",
                                    large + "{{ S.split('a') }}",
                                    large + "{{ S|reverse }}",
                                    twice + "{{ ns.s }}",
                                    twice + "{{ ns.s|tojson(indent=2) }}",
                                    twice + "{{ ns.s == [ns.s] }}{{ ns.s|string }}",
                                    twice + "{{ [ns.s, ns.s]|unique|list }}",
                                    twice + "{{ raise_exception(ns.s) }}"}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_NE(message_of(source), "") << source;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(seconds.count(), 5) << source;  // about a second at most, without sanitizers
  }
  EXPECT_EQ(ChatTemplate("{{ 'aé'|last }}{{ 'éa'|first }}{{ [1, 2]|last }}{{ ''|first }}").render({}, {}), "éé2");
}

TEST(ChatTemplate, BadJsonIsAnError) {
  const ChatTemplate chat("x");
  EXPECT_THROW(chat.render_json("[", {}), Error);
  EXPECT_THROW(chat.render_json("{}", {}), Error);
  EXPECT_THROW(chat.render({}, {.variables_json = "[]"}), Error);
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += '[';
  for (int i = 0; i < 10000; ++i) deep += ']';
  EXPECT_THROW(chat.render_json(deep, {}), Error);
}

}  // namespace
}  // namespace rlx

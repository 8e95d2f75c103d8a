#include "text/chat_template.h"

#include <gtest/gtest.h>

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

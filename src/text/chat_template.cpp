#include "text/chat_template.h"

#include "rlx/error.h"
#include "text/jinja/interpreter.h"
#include "text/unicode.h"

namespace rlx {

using jinja::OrderedJson;

struct ChatTemplate::Program {
  jinja::Body body;
};

static OrderedJson parse(std::string_view text, std::string_view what) {
  try {
    return OrderedJson::parse(text);
  } catch (const OrderedJson::exception&) {
    fail(ErrorKind::kInvalid, str(what, " of the chat are not valid JSON."));
  }
}

ChatTemplate::ChatTemplate(std::string_view source) {
  require(text::is_valid_utf8(source), "The chat template is not UTF-8.");
  program_ = std::make_shared<const Program>(Program{jinja::parse(source)});
}

static std::string run(const jinja::Body& body, jinja::Value messages, const ChatOptions& options) {
  jinja::Interpreter interpreter(options.now);
  if (!options.variables_json.empty()) {
    const OrderedJson variables = parse(options.variables_json, "The variables");
    require(variables.is_object(), "The variables of the chat are not a JSON object.");
    for (const auto& [name, value] : variables.items()) interpreter.set(name, jinja::Value::from_json(value));
  }
  interpreter.set("messages", std::move(messages));
  interpreter.set("add_generation_prompt", options.add_generation_prompt);
  interpreter.set("bos_token", options.bos_token);
  interpreter.set("eos_token", options.eos_token);
  return interpreter.run(body);
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages, const ChatOptions& options) const {
  std::vector<jinja::Value> list;
  for (const ChatMessage& message : messages)
    list.push_back(jinja::Value::dict(
        {{"role", text::to_valid_utf8(message.role)}, {"content", text::to_valid_utf8(message.content)}}));
  return run(program_->body, jinja::Value::list(std::move(list)), options);
}

std::string ChatTemplate::render_json(std::string_view messages_json, const ChatOptions& options) const {
  const OrderedJson messages = parse(messages_json, "The messages");
  require(messages.is_array(), "The messages of the chat are not a JSON array.");
  return run(program_->body, jinja::Value::from_json(messages), options);
}

}  // namespace rlx

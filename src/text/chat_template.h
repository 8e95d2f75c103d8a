// Chat templates: the part of Jinja that published models use to write a conversation as a prompt.
//
//   const ChatTemplate chat(source);  // tokenizer.chat_template of a GGUF file, "chat_template" of
//   tokenizer_config.json std::string prompt = chat.render({{"user", "Why is the sky blue?"}}, {.add_generation_prompt
//   = true, .bos_token = "<s>"});
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

struct ChatMessage {
  std::string role;  // system, user, assistant, tool
  std::string content;
};

struct ChatOptions {
  bool add_generation_prompt = false;
  std::string bos_token, eos_token;
  std::string variables_json;  // an object: more variables for the template, such as tools or enable_thinking
  int64_t now = 0;             // seconds since 1970 that strftime_now sees, in UTC; 0: the clock, in local time
};

class ChatTemplate {
 public:
  explicit ChatTemplate(std::string_view source);  // throws where the source is no template, and says in which line

  std::string render(const std::vector<ChatMessage>& messages, const ChatOptions& options) const;

  // Messages as a JSON array of objects: for content in parts, tool calls and other fields.
  std::string render_json(std::string_view messages_json, const ChatOptions& options) const;

  struct Program;

 private:
  std::shared_ptr<const Program> program_;
};

}  // namespace rlx

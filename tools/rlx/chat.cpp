#include <editline/readline.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdlib>

#include "language.h"
#include "model_store.h"
#include "rlx/log.h"
#include "text/chat_template.h"

namespace rlx::cli {

namespace {

struct ChatArgs {
  LanguageArgs language;
  SamplingArgs sampling;
  std::optional<std::string> prompt, system;
  generate::AnswerOptions answer;
  bool stats = false, json = false;
};

// Models whose file has no template are spoken to in the form that most of them know.
constexpr const char* kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

void check_message(const std::string& text) {
  require(!text.empty(), "The message is empty: there is nothing to answer.");
  require_utf8(text, "The message");
}

class Chat {
 public:
  Chat(const ChatArgs& args)
      : args_(args),
        model_(generate::open_language_model(find_model(args.language.model))),
        template_(model_.chat_template.empty() ? kChatMl : model_.chat_template),
        generator_(*model_.source, generator_options(args.language, args.sampling)) {
    if (model_.chat_template.empty())
      log(LogLevel::kWarning, "The model has no chat template; ChatML is used, which it may not know.");
    forget();
  }

  void forget() {
    messages_.clear();
    if (args_.system) messages_.push_back({"system", *args_.system});
  }

  // Answers a message, with the text to `show` as it comes.
  generate::Answer say(const std::string& text, const std::function<bool(std::string_view)>& show) {
    check_message(text);
    messages_.push_back({"user", text});
    ChatOptions options{.add_generation_prompt = true};
    if (const auto bos = model_.tokenizer.bos()) options.bos_token = model_.tokenizer.piece(*bos);
    if (const auto eos = model_.tokenizer.eos()) options.eos_token = model_.tokenizer.piece(*eos);
    try {
      std::vector<int32_t> ids = encode(template_.render(messages_, options));
      generate::Answer answer = generate::answer(generator_, model_.tokenizer, ids, args_.answer, show);
      messages_.push_back({"assistant", answer.text});
      return answer;
    } catch (...) {
      messages_.pop_back();  // the message was not answered
      throw;
    }
  }

  const generate::Generator& generator() const { return generator_; }

 private:
  // Templates write the start token themselves, most of them.
  std::vector<int32_t> encode(const std::string& text) const {
    std::vector<int32_t> ids = model_.tokenizer.encode(text, {.parse_special = true});
    const auto bos = model_.tokenizer.bos();
    if (bos && model_.tokenizer.adds_bos() && (ids.empty() || ids[0] != *bos)) ids.insert(ids.begin(), *bos);
    return ids;
  }

  const ChatArgs& args_;
  generate::LanguageModel model_;
  ChatTemplate template_;
  generate::Generator generator_;
  std::vector<ChatMessage> messages_;
};

int answer_once(const ChatArgs& args, std::string& out) {
  check_message(*args.prompt);  // before the model is loaded
  Chat chat(args);
  const Interrupt interrupt;
  const generate::Answer answer = chat.say(*args.prompt, [&](std::string_view piece) {
    if (!args.json) progress("", -1);
    return (args.json || write_now(piece)) && !Interrupt::pressed();
  });
  if (args.json) {
    out += dump({{"text", answer.text},
                 {"ids", answer.ids},
                 {"stopped_by", generate::name_of(answer.reason)},
                 {"prompt_tokens_per_s", answer.prompt_tokens_per_s()},
                 {"tokens_per_s", answer.tokens_per_s()},
                 {"time_to_first_token_ms", answer.prompt_s * 1e3},
                 {"device", chat.generator().executable().device()}});
    return 0;
  }
  out += "\n";
  say_if_full(answer, chat.generator());
  if (args.stats) out += stats_text(answer, chat.generator()) + "\n";
  return 0;
}

constexpr const char* kHelp =
    "/clear  forget the conversation\n/stats  show or hide tokens per second\n/exit   leave; so does Ctrl-D\n"
    "Ctrl-C stops an answer. A line that ends with \\ goes on in the next one.\n";

std::optional<std::string> read_message() {
  std::string message;
  while (true) {
    char* line = readline(message.empty() ? "> " : ". ");
    if (line == nullptr) {
      if (Interrupt::pressed()) {  // Ctrl-C: the line is dropped
        Interrupt::clear();
        write_now("\n");
        message.clear();
        continue;
      }
      return std::nullopt;
    }
    message += line;
    std::free(line);
    if (message.empty()) continue;
    if (message.back() != '\\') break;
    message.back() = '\n';
  }
  add_history(message.c_str());
  return message;
}

int converse(const ChatArgs& args, std::string&) {
  Chat chat(args);
  const Interrupt interrupt;
  bool stats = args.stats;
  progress("", -1);
  if (isatty(STDIN_FILENO)) write_now("Type a message; /help says what else there is.\n");
  while (const std::optional<std::string> message = read_message()) {
    if (*message == "/exit" || *message == "/quit") break;
    if (*message == "/clear") {
      chat.forget();
    } else if (*message == "/stats") {
      stats = !stats;
    } else if (message->starts_with("/")) {
      write_now(*message == "/help" ? kHelp : str("There is no command ", *message, ".\n", kHelp));
    } else {
      Interrupt::clear();
      try {
        const generate::Answer answer = chat.say(*message, [&](std::string_view piece) {
          progress("", -1);
          return write_now(piece) && !Interrupt::pressed();
        });
        write_now("\n");
        if (stats) write_now(str("[", stats_text(answer, chat.generator()), "]\n"));
        if (answer.reason == generate::StopReason::kContext)
          write_now("[The context is full: /clear begins a new conversation.]\n");
      } catch (const Error& e) {
        write_now(str("[", e.what(), "]\n"));
      }
      Interrupt::clear();
    }
  }
  return 0;
}

}  // namespace

void add_chat(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("chat", "talk with a language model, in the form it was trained for");
  auto args = std::make_shared<ChatArgs>();
  add_language_options(*sub, args->language);
  CLI::Option* prompt = sub->add_option("-p,--prompt", args->prompt, "answer this, once; without it: a conversation")
                            ->option_text("TEXT");
  sub->add_option("--system", args->system, "what the model is told before the conversation")->option_text("TEXT");
  sub->add_option("-n,--tokens", args->answer.max_tokens,
                  "tokens of an answer at most; by default -1: until the context is full")
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 24))
      ->option_text("N");
  add_sampling_options(*sub, args->sampling);
  sub->add_option("--stop", args->answer.stops, "a text that ends an answer; may be given several times")
      ->allow_extra_args(false)
      ->option_text("TEXT");
  sub->add_flag("--stats", args->stats, "tokens per second, behind each answer");
  sub->add_flag("--json", args->json, "with -p: write JSON when it is done, instead of the text as it comes")
      ->needs(prompt)
      ->option_text(" ");
  sub->footer(
      "In a conversation /help lists what else can be typed.\n\nExamples:\n  rlx chat smollm2\n  rlx chat smollm2 -p "
      "\"Why is the sky blue?\" --stats");
  sub->callback([&work, args] {
    work = [args](std::string& out) { return args->prompt ? answer_once(*args, out) : converse(*args, out); };
  });
}

}  // namespace rlx::cli

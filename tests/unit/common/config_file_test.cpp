#include "common/cli/config_file.hpp"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>
#include <fstream>

#include "common/cli/command_line.hpp"
#include "common/cli/size_option.hpp"
#include "common/cli/toml_file.hpp"
#include "common/ids.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;

namespace {

/// A program with an option of each kind, and a folder for its configuration file.
struct ConfiguredProgram {
  TemporaryDirectory directory = TemporaryDirectory::create("config").value();
  std::string path = directory.path() / "nothing.toml";
  std::uint32_t threads = 3;
  std::uint64_t capacity = 1 << 20;
  std::string name = "w", state_dir;
  std::vector<std::uint32_t> users;
  bool allow = false;
  CLI::App app{"Does nothing", "nothing"};

  ConfiguredProgram() {
    add_config_options(app);
    app.add_option("--threads", threads, "Threads")->check(CLI::Range(1, 8))->capture_default_str();
    add_size_option(app, "--capacity", capacity, "Memory")->default_str("1MiB");
    app.add_option("--name", name, "Name")->check(check_name)->capture_default_str();
    app.add_option("--state-dir", state_dir, "Directory");
    app.add_option("--user", users, "Users");
    app.add_flag("--allow", allow, "Allow it");
  }

  std::optional<Usage> parse(const std::string& text, std::vector<std::string> words = {}) {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0644);
    words.insert(words.begin(), {"--config", path});
    return parse_cli_arguments(app, words);
  }
};

/// The errors of a file with this text, without the path.
std::vector<std::string> errors_of(const std::string& text) {
  ConfiguredProgram program;
  const auto usage = program.parse(text);
  if (!usage) return {};
  CHECK(usage->exit_code == kExitUsage);
  std::vector<std::string> found;
  for (const Error& error : usage->config_errors) {
    REQUIRE(error.detail.starts_with(program.path + ":"));
    found.push_back(error.detail.substr(program.path.size() + 1));
  }
  return found;
}

}  // namespace

TEST_CASE("config file: a key sets the option of its name") {
  ConfiguredProgram program;
  const auto usage = program.parse(
      "threads = 5\ncapacity = \"3GiB\" # memory\nname = 'w-9'\nuser = [4, 5]\nallow = true\n");
  REQUIRE_FALSE(usage);
  CHECK(program.threads == 5);
  CHECK(program.capacity == 3ull << 30);
  CHECK(program.name == "w-9");
  CHECK(program.users == std::vector<std::uint32_t>{4, 5});
  CHECK(program.allow);
}

TEST_CASE("config file: the command line wins, whatever comes first") {
  ConfiguredProgram program;
  REQUIRE_FALSE(program.parse("threads = 5\nuser = [4, 5]\nallow = true\ncapacity = 7",
                              {"--threads", "2", "--user", "9", "--allow=false"}));
  CHECK(program.threads == 2);
  CHECK(program.users == std::vector<std::uint32_t>{9});
  CHECK_FALSE(program.allow);
  CHECK(program.capacity == 7);
}

TEST_CASE("config file: an environment variable wins over the file") {
  ConfiguredProgram program;
  program.app.get_option("--name")->envname("LEASEHOLD_CONFIG_TEST_NAME");
  ::setenv("LEASEHOLD_CONFIG_TEST_NAME", "env", 1);
  REQUIRE_FALSE(program.parse("name = 'file'\n"));
  ::unsetenv("LEASEHOLD_CONFIG_TEST_NAME");
  CHECK(program.name == "env");
}

TEST_CASE("config file: every wrong key is reported with its line") {
  CHECK(errors_of("threads = 1\ncapcity = 7\n\nthreads-max = 2\nname = 'a b'\n") ==
        std::vector<std::string>{"2: unknown key 'capcity'; did you mean 'capacity'?",
                                 "4: unknown key 'threads-max'; --print-config prints all keys",
                                 "5: --name: " + TenantId::parse("a b").error().detail});
}

TEST_CASE("config file: a value of the wrong type is an error that names the right one") {
  const auto [text, error] = GENERATE(table<std::string, std::string>({
      {"threads = '4'", "1: threads must be an integer, not of type string"},
      {"threads = 4.5", "1: threads must be an integer, not of type number"},
      {"threads = [4]", "1: threads must be an integer, not of type array of integers"},
      {"name = 4", "1: name must be a string, in quotes, not of type integer"},
      {"capacity = true", "1: capacity must be a size, such as \"256MiB\", not of type boolean"},
      {"allow = 1", "1: allow must be true or false, not of type integer"},
      {"user = ['a']", "1: user must be an integer, or an array, not of type array of strings"},
      {"user = []", "1: user is an empty array; give a value, or leave the key out"},
      {"[name]\nof = 1", "1: name must be a string, in quotes, not of type table"},
      {"name = 2026-11-24", "1: name must be a string, in quotes, not of type date or time"},
      {"name = ''", "1: the value of name is empty; give one, or leave the key out"},
  }));
  CHECK(errors_of(text) == std::vector{error});
}

TEST_CASE("config file: a value out of range is an error with its line, also if it is overridden") {
  ConfiguredProgram program;
  const auto usage = program.parse("\nthreads = 9\n", {"--threads", "2"});
  REQUIRE(usage);
  CHECK(usage->config_errors.at(0).detail.starts_with(program.path + ":2: --threads: "));
  CHECK(errors_of("threads = -1").at(0).starts_with("1: --threads: "));
}

TEST_CASE("config file: a key given twice and a broken line are errors with their line") {
  const std::string twice = errors_of("threads = 1\nthreads = 2\n").at(0);
  CHECK(twice.starts_with("2: "));
  CHECK(twice.contains("threads"));
  CHECK(errors_of("threads = 1\nname = \n").at(0).starts_with("2: "));
}

TEST_CASE("config file: its own options, help and version are not keys") {
  for (const char* key : {"config", "check-config", "print-config", "help"})
    CHECK(errors_of(std::string(key) + " = true").at(0).starts_with("1: unknown key "));
}

TEST_CASE("config file: --print-config needs no option that the program requires") {
  for (const bool prints : {true, false}) {
    ConfiguredProgram program;
    program.app.get_option("--name")->required();
    CHECK(program
              .parse("", prints ? std::vector<std::string>{"--print-config"}
                                : std::vector<std::string>{})
              .has_value() != prints);
  }
}

TEST_CASE("config file: a file that other users can write to is refused") {
  ConfiguredProgram program;
  std::ofstream(program.path) << "threads = 5\n";
  const mode_t mode = GENERATE(0664, 0646);
  ::chmod(program.path.c_str(), mode);
  const auto usage =
      parse_cli_arguments(program.app, std::vector<std::string>{"--config", program.path});
  REQUIRE(usage);
  CHECK(usage->exit_code == exit_code(Errc::PermissionDenied));
  CHECK(usage->config_errors.at(0).code == Errc::PermissionDenied);
  CHECK(usage->config_errors.at(0).detail.contains("chmod go-w"));
  CHECK(program.threads == 3);
}

TEST_CASE("config file: a missing file and a folder are errors") {
  ConfiguredProgram program;
  const auto missing =
      parse_cli_arguments(program.app, std::vector<std::string>{"--config", program.path});
  REQUIRE(missing);
  CHECK(missing->exit_code == exit_code(Errc::FileNotFound));
  ConfiguredProgram other;
  const auto folder = parse_cli_arguments(
      other.app, std::vector<std::string>{"--config", other.directory.path().string()});
  REQUIRE(folder);
  CHECK(folder->exit_code == kExitUsage);
}

TEST_CASE("config file: the printed configuration reads back as the same values") {
  ConfiguredProgram first;
  REQUIRE_FALSE(first.parse("capacity = '1536KiB'\nallow = true\n",
                            {"--user", "7", "8", "--state-dir", "/a \"b\"\\c\td\xC3\xA9"}));
  const std::string text = config_text(first.app).value();
  CHECK(text.contains("# Threads\nthreads = 3\n"));
  CHECK(text.contains("capacity = \"1536KiB\"\n"));
  CHECK(text.contains("user = [7, 8]\n"));
  CHECK(text.contains("allow = true\n"));

  ConfiguredProgram second;
  REQUIRE_FALSE(second.parse(text));
  CHECK(config_text(second.app).value() == text);
  CHECK(second.state_dir == first.state_dir);
  CHECK(second.capacity == first.capacity);
  CHECK(second.users == first.users);
}

TEST_CASE("config file: an option without value and default is printed as a comment") {
  ConfiguredProgram program;
  REQUIRE_FALSE(program.parse(""));
  CHECK(config_text(program.app).value().contains("# Directory\n# state-dir =\n"));
}

TEST_CASE("config file: a value that is not UTF-8 cannot be printed") {
  ConfiguredProgram program;
  REQUIRE_FALSE(program.parse("", {"--state-dir", "/a\xFF"}));
  CHECK(config_text(program.app).error().code == Errc::BadRequest);
}

TEST_CASE("toml: entries keep the order of the file") {
  const auto entries = parse_toml("b = 1\na = 'x'\n\nc = [1, 2]").value();
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].key == "b");
  CHECK(entries[1].key == "a");
  CHECK(entries[2].line == 4);
  CHECK(entries[2].values.size() == 2);
}

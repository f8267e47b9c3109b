#include "common/cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <vector>

#include "common/cli/parse_check.hpp"
#include "common/cli/size_option.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;

namespace {

struct Program {
  std::uint64_t count = 0;
  CLI::App app{"Does nothing.", "nothing"};
  Program() {
    app.set_version_flag("--version", "nothing 1.0");
    app.add_option("--count", count, "How many");
    app.add_subcommand("part", "Some of it")->add_option("--much", count, "How much");
  }

  std::optional<Usage> parse(const std::vector<std::string>& words) {
    return parse_cli_arguments(app, words);
  }
};

}  // namespace

TEST_CASE("command line: valid options give no usage text") {
  Program program;
  CHECK_FALSE(program.parse({"--count", "18446744073709551615"}));
  CHECK(program.count == UINT64_MAX);
}

TEST_CASE("command line: positional words keep their order") {
  Program program;
  REQUIRE_FALSE(program.parse({"--count", "1", "part", "--much", "2"}));
  CHECK(program.count == 2);
}

TEST_CASE("command line: invalid counts are rejected, also in subcommands") {
  const std::string bad = GENERATE("-1", "18446744073709551616", "1.5", "");
  const auto before =
      GENERATE(std::vector<std::string>{"--count"}, std::vector<std::string>{"part", "--much"});
  CAPTURE(bad, before);
  std::vector<std::string> words = before;
  words.push_back(bad);
  const auto usage = Program().parse(words);
  REQUIRE(usage);
  CHECK(usage->exit_code == kExitUsage);
  CHECK(usage->text.find(before.back()) != std::string::npos);
}

TEST_CASE("command line: an empty value is rejected, and the error names option and value") {
  const auto words =
      GENERATE(std::vector<std::string>{"--name", ""}, std::vector<std::string>{"--name="},
               std::vector<std::string>{"part", "--name", "", "--count", "1"});
  Program program;
  std::string name;
  program.app.add_option("--name", name, "Which");
  program.app.fallthrough();
  const auto usage = program.parse(words);
  REQUIRE(usage);
  CHECK(usage->exit_code == kExitUsage);
  CHECK(usage->text == "--name: the value '' is empty; give one, or leave it out");
}

TEST_CASE("command line: paths are checked before they are used") {
  const TemporaryDirectory directory = TemporaryDirectory::create("paths").value();
  const std::string folder = directory.path().string();
  const std::string file = folder + "/file";
  std::ofstream(file) << "text";

  CHECK(check_socket_path("/run/broker.sock").empty());
  CHECK(check_socket_path(std::string(107, 'x')).empty());
  CHECK_FALSE(check_socket_path(std::string(108, 'x')).empty());
  CHECK_FALSE(check_socket_path(folder).empty());
  CHECK(check_file_path(file).empty());
  CHECK_FALSE(check_file_path(folder).empty());
  CHECK(check_directory_path(folder).empty());
  CHECK(check_directory_path(folder + "/new").empty());
  CHECK_FALSE(check_directory_path(file).empty());
}

TEST_CASE("command line: a check made of a parser reports the error of the parser") {
  const auto check = checked([](const std::string& text) -> Result<int> {
    if (text == "1") return 1;
    return fail(Errc::BadRequest, "'" + text + "' is not 1");
  });
  CHECK(check("1").empty());
  CHECK(check("2") == "'2' is not 1");
}

TEST_CASE("command line: help and version exit with success") {
  const auto help = Program().parse({"--help"});
  REQUIRE(help);
  CHECK(help->exit_code == kExitOk);
  CHECK(help->text.find("Usage: nothing ") != std::string::npos);
  CHECK(help->text.find("--count") != std::string::npos);

  const auto version = Program().parse({"--version"});
  REQUIRE(version);
  CHECK(version->exit_code == kExitOk);
  CHECK(version->text == "nothing 1.0\n");
}

TEST_CASE("command line: an error is one line without a newline") {
  const std::string word = GENERATE("--no-such-option", "--no-such\x1b[2J\noption");
  const auto usage = Program().parse({word});
  REQUIRE(usage);
  CHECK(usage->exit_code == kExitUsage);
  const std::string line = format_error("nothing", *usage);
  CHECK(line.starts_with("nothing: "));
  CHECK(line.find(printable(word)) != std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(line.find('\x1b') == std::string::npos);
}

TEST_CASE("command line: a size is a whole number with a unit, and an error names that form") {
  for (const char* text : {"268435456", "256MiB", "256mb", "256M", "256 Mi", "262144k"})
    CHECK(parse_size(text) == 256u << 20);
  CHECK(parse_size("15EiB") == 15ull << 60);
  for (const char* text : {"", "MiB", "-1", "1.5GiB", "256Mibi", "1 2", "99999999999999999999x"}) {
    CAPTURE(text);
    REQUIRE_FALSE(parse_size(text));
    CHECK(parse_size(text).error().detail.ends_with("such as 256MiB"));
  }
  for (const char* text : {"16EiB", "99999999999999999999", "99999999999999999999 KiB"}) {
    CAPTURE(text);
    REQUIRE_FALSE(parse_size(text));
    CHECK(parse_size(text).error().detail.contains("is too large; a size has at most 184"));
  }
}

TEST_CASE("command line: a size out of its range is refused with the range in the same form") {
  CLI::App app{"Does nothing.", "nothing"};
  std::uint64_t size = 1;
  add_size_option(app, "--size", size, "How much",
                  {.low = 2 << 20, .high = 1ull << 50, .or_zero = true});
  const auto usage = parse_cli_arguments(app, std::vector<std::string>{"--size", "5k"});
  REQUIRE(usage);
  CHECK(usage->text == "--size: '5k' is neither 0 nor a size from 2MiB to 1PiB");
  CHECK(parse_cli_arguments(app, std::vector<std::string>{"--size", "much"})
            ->text.contains("such as 256MiB"));
  CHECK_FALSE(parse_cli_arguments(app, std::vector<std::string>{"--size", "0"}));
  CHECK(size == 0);
  CHECK_FALSE(parse_cli_arguments(app, std::vector<std::string>{"--size", "3GiB"}));
  CHECK(size == 3ull << 30);
}

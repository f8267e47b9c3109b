#include "worker/batch/batch_lines.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace leasehold::batch {
namespace {

const std::string kEndpoint = "/v1/completions";

std::string line_of(const std::string& id, const std::string& model = "m") {
  return fmt::format(
      R"({{"custom_id":"{}","method":"POST","url":"/v1/completions","body":{{"model":"{}"}}}})", id,
      model);
}

CheckedLines check(const std::string& text, std::size_t piece = 1 << 20) {
  LineChecker checker(kEndpoint, [](std::string_view model) { return model == "m"; });
  for (std::size_t at = 0; at < text.size(); at += piece)
    checker.add(std::string_view(text).substr(at, piece));
  return checker.finish();
}

std::vector<std::string> codes_of(const std::string& text) {
  std::vector<std::string> codes;
  for (const LineError& error : check(text).errors)
    codes.push_back(fmt::format("{}:{}", error.line, error.code));
  return codes;
}

}  // namespace

TEST_CASE("batch lines: each request is found again at its place, for pieces of any size") {
  const std::string text = line_of("a") + "\r\n\n  \n" + line_of("b") + "\n" + line_of("c");
  const std::size_t piece = GENERATE(1, 5, 4096);
  const CheckedLines checked = check(text, piece);
  REQUIRE(checked.errors.empty());
  REQUIRE(checked.lines.size() == 3);
  for (const LineSpan& span : checked.lines) {
    const auto line = parse_line(std::string_view(text).substr(span.offset, span.size_bytes));
    REQUIRE(line);
    CHECK(line->custom_id == span.custom_id);
    CHECK(line->body == R"({"model":"m"})");
  }
}

TEST_CASE("batch lines: every bad line is named with its number and its fault") {
  const std::string other_url =
      R"({"custom_id":"u","method":"POST","url":"/v1/embeddings","body":{}})";
  CHECK(codes_of(line_of("a") + "\n" + line_of("a") + "\n" + other_url + "\nnot JSON\n" +
                 line_of("e", "gpt-4") + "\n") ==
        std::vector<std::string>{"2:duplicate_custom_id", "3:mismatched_endpoint", "4:invalid_line",
                                 "5:model_not_found"});
  CHECK(codes_of("[1]\n") == std::vector<std::string>{"1:invalid_line"});
  CHECK(codes_of("\"\xff\"\n") == std::vector<std::string>{"1:invalid_line"});
  CHECK(codes_of(R"({"custom_id":"","method":"POST","url":"/v1/completions","body":{}})") ==
        std::vector<std::string>{"1:invalid_line"});
  CHECK(codes_of(R"({"custom_id":"a","method":"GET","url":"/v1/completions","body":{}})") ==
        std::vector<std::string>{"1:invalid_line"});
  CHECK(codes_of(R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":3})") ==
        std::vector<std::string>{"1:invalid_line"});
  CHECK(codes_of("\n\n") == std::vector<std::string>{"0:empty_file"});
}

TEST_CASE("batch lines: a line that is too long is refused, and the next one is read") {
  const std::string text = std::string(kMaxLineBytes + 1, 'x') + "\n" + line_of("a") + "\n";
  const CheckedLines checked = check(text, 1000);
  REQUIRE(checked.errors.size() == 1);
  CHECK(checked.errors[0].code == "line_too_long");
  REQUIRE(checked.lines.size() == 1);
  CHECK(text.substr(checked.lines[0].offset, checked.lines[0].size_bytes) == line_of("a"));
}

TEST_CASE("batch lines: a check stops after its most errors, and beyond the most lines") {
  std::string bad;
  for (int i = 0; i < 200; ++i) bad += "x\n";
  CHECK(check(bad).errors.size() == kMaxLineErrors);
  std::string many;
  for (std::uint32_t i = 0; i <= kMaxLines; ++i) many += line_of(std::to_string(i)) + "\n";
  const CheckedLines checked = check(many);
  REQUIRE(!checked.errors.empty());
  CHECK(checked.errors[0].code == "too_many_lines");
  CHECK(checked.errors[0].line == kMaxLines + 1);
}

TEST_CASE("batch lines: a result has its line's id, status and body") {
  const std::string line =
      result_line("a \"b\"", {.status = 200, .request_id = "x-1", .body = R"({"n":1})"});
  REQUIRE(line.ends_with('\n'));
  const auto json = nlohmann::json::parse(line);
  CHECK(json["custom_id"] == "a \"b\"");
  CHECK(json["response"]["status_code"] == 200);
  CHECK(json["response"]["body"]["n"] == 1);
  CHECK(json["error"].is_null());
  CHECK(answered_id(line) == "a \"b\"");
  CHECK(answered_id(line.substr(0, line.size() / 2)).empty());
  const auto unrun = nlohmann::json::parse(unrun_line("a", "batch_expired", "too late"));
  CHECK(unrun["response"].is_null());
  CHECK(unrun["error"]["code"] == "batch_expired");
}

TEST_CASE("batch lines: what may succeed later runs again, and the end of the key ends all") {
  CHECK(line_end(200) == LineEnd::Completed);
  for (const int status : {400, 404, 413, 499, 500}) CHECK(line_end(status) == LineEnd::Failed);
  for (const int status : {429, 503, 504}) CHECK(line_end(status) == LineEnd::Again);
  for (const int status : {401, 403}) CHECK(line_end(status) == LineEnd::KeyEnded);
}

}  // namespace leasehold::batch

#include "worker/batch/upload_form.hpp"

#include <catch2/catch.hpp>

namespace leasehold::batch {
namespace {

const std::string kForm =
    "preamble\r\n--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
    "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".jsonl\"\r\n"
    "Content-Type: application/octet-stream\r\n\r\n{\"a\":1}\r\n--\r\n--c\n\r\n--b--\r\nepilogue";

struct Parsed {
  std::string file;
  std::map<std::string, std::string> fields;
  std::string filename;
};

/// Gives the form in pieces of this size.
Result<Parsed> parse(const std::string& text, std::size_t piece = 1 << 20) {
  Parsed parsed;
  UploadForm form("b", [&parsed](std::string_view bytes) -> Result<void> {
    parsed.file += bytes;
    return {};
  });
  for (std::size_t at = 0; at < text.size(); at += piece)
    TRY(form.add(std::string_view(text).substr(at, piece)));
  TRY(form.finish());
  parsed.fields = form.fields();
  parsed.filename = form.filename();
  return parsed;
}

std::string refusal_of(const std::string& text) {
  const auto parsed = parse(text);
  REQUIRE(!parsed);
  CHECK(parsed.error().code == Errc::BadRequest);
  return parsed.error().detail;
}

std::string part(const std::string& head, const std::string& content) {
  return "--b\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + content + "\r\n";
}

}  // namespace

TEST_CASE("upload form: the file and the fields are the same for pieces of any size") {
  const std::size_t piece = GENERATE(1, 2, 3, 7, 64, 4096);
  const auto parsed = parse(kForm, piece);
  REQUIRE(parsed);
  CHECK(parsed->file == "{\"a\":1}\r\n--\r\n--c\n");
  CHECK(parsed->fields == std::map<std::string, std::string>{{"purpose", "batch"}});
  CHECK(parsed->filename == "a \"b\".jsonl");
}

TEST_CASE("upload form: a form that is cut off anywhere is refused") {
  const std::size_t end = kForm.rfind("--b--") + 5;
  for (std::size_t size = 0; size < end; ++size) CHECK(!parse(kForm.substr(0, size)));
  CHECK(parse(kForm.substr(0, end)));
}

TEST_CASE("upload form: what is wrong is named") {
  const std::string file = part("name=\"file\"; filename=\"f\"", "x");
  CHECK_THAT(refusal_of(part("name=\"purpose\"", "batch") + "--b--"),
             Catch::Contains("it has no file"));
  CHECK_THAT(refusal_of(file + file + "--b--"), Catch::Contains("two files"));
  CHECK_THAT(refusal_of(part("name=\"p\"", "1") + part("name=\"p\"", "2") + file + "--b--"),
             Catch::Contains("field 'p' is sent twice"));
  CHECK_THAT(refusal_of(part("name=\"p\"", std::string(1025, 'x')) + file + "--b--"),
             Catch::Contains("'p' is longer than 1 KiB"));
  CHECK_THAT(refusal_of(part("filename=\"f\"", "x") + "--b--"), Catch::Contains("has no name"));
  CHECK_THAT(refusal_of(std::string(9 << 10, 'x')), Catch::Contains("does not begin with"));
  CHECK_THAT(refusal_of(part("name=\"file\"; filename=\"\xff\"", "x") + "--b--"),
             Catch::Contains("not UTF-8"));
}

TEST_CASE("upload form: the boundary comes from the Content-Type") {
  CHECK(boundary_of("multipart/form-data; boundary=abc").value() == "abc");
  CHECK(boundary_of("Multipart/Form-Data; charset=x; Boundary=\"a b\"").value() == "a b");
  CHECK(boundary_of("application/json").error().code == Errc::BadRequest);
  CHECK(boundary_of("multipart/form-data").error().code == Errc::BadRequest);
  CHECK(boundary_of("multipart/form-data; boundary=" + std::string(71, 'x')).error().code ==
        Errc::BadRequest);
}

}  // namespace leasehold::batch

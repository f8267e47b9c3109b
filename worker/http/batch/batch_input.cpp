#include "worker/http/batch/batch_input.hpp"

#include <functional>
#include <utility>

#include "common/machine/confined.hpp"
#include "worker/batch/disk_file.hpp"

namespace leasehold::http {

using batch::BatchRecord;
using batch::BatchStore;
using batch::LineSpan;

namespace {

constexpr std::size_t kPieceBytes = 256 << 10;

/// Calls `use` with every line of a results file, which is whole.
Result<void> for_each_line(int fd, const std::function<void(std::string_view)>& use) {
  std::string rest;
  for (std::uint64_t at = 0;;) {
    const std::string piece = TRY(batch::read_at(fd, at, kPieceBytes));
    if (piece.empty()) return {};
    at += piece.size();
    rest += piece;
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos;
         end = rest.find('\n', begin)) {
      use(std::string_view(rest).substr(begin, end - begin));
      begin = end + 1;
    }
    rest.erase(0, begin);
  }
}

Api api_of(std::string_view endpoint) {
  if (endpoint == "/v1/completions") return Api::Completions;
  return endpoint == "/v1/responses" ? Api::Responses : Api::Chat;
}

Read<LineRequest> parse_line_body(std::string_view endpoint, std::string_view body,
                                  const ApiModel& model, const RequestDefaults& defaults) {
  if (endpoint == "/v1/embeddings") return TRY(parse_embeddings_request(body, model, defaults));
  ApiRequest request = TRY(parse_api_request(api_of(endpoint), body, model, defaults));
  if (request.stream) {
    return std::unexpected(ApiError{
        {Errc::BadRequest, "stream is true; a batch has no streams, so leave it out"}, "stream"});
  }
  request.submit.resumable = false;
  return request;
}

}  // namespace

Result<PreparedBatch> PreparedBatch::from(const BatchStore& store, const BatchRecord& record,
                                          const ApiModel& model) {
  PreparedBatch prepared;
  prepared.input = TRY(store.read_file(record.input_file));
  batch::LineChecker checker(record.endpoint, [&model](std::string_view name) {
    return has_name(model, name) || is_adapter(model, name);
  });
  for (std::uint64_t at = 0;;) {
    const std::string piece = TRY(batch::read_at(prepared.input.get(), at, kPieceBytes));
    if (piece.empty()) break;
    at += piece.size();
    checker.add(piece);
  }
  prepared.checked = checker.finish();
  prepared.counts.total = static_cast<std::uint32_t>(prepared.checked.lines.size());
  if (!prepared.checked.errors.empty()) return prepared;
  prepared.output = TRY(store.open_results(record.output_file));
  prepared.errors = TRY(store.open_results(record.error_file));
  const auto count = [&](std::uint32_t& counter) {
    return [&](std::string_view line) {
      const std::string id = batch::answered_id(line);
      if (!id.empty() && prepared.answered.insert(id).second) ++counter;
    };
  };
  TRY(for_each_line(prepared.output.get(), count(prepared.counts.completed)));
  TRY(for_each_line(prepared.errors.get(), count(prepared.counts.failed)));
  return prepared;
}

Read<LineRequest> read_request(int input, const LineSpan& span, std::string_view endpoint,
                               const RequestDefaults& defaults, const ApiModel& model) {
  const auto bytes = batch::read_at(input, span.offset, span.size_bytes);
  if (!bytes) return std::unexpected(ApiError{bytes.error()});
  const auto line = batch::parse_line(*bytes);
  if (!line) return std::unexpected(ApiError{line.error()});
  auto request = catch_request_errors(
      [&]() -> Result<Read<LineRequest>> {
        return parse_line_body(endpoint, line->body, model, defaults);
      },
      Errc::BadRequest);
  return request ? *std::move(request) : std::unexpected(ApiError{request.error()});
}

}  // namespace leasehold::http

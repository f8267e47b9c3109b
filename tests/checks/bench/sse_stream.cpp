#include "tests/checks/bench/sse_stream.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "ipc/control/transport/peer.hpp"
#include "tests/checks/bench/tenant_pool.hpp"

namespace leasehold::bench {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kData = "data: ";
constexpr std::size_t kPromptTokens = 4;

}  // namespace

SseKind sse_kind_of(std::string_view data) {
  if (data.starts_with(R"({"choices":[{"finish_reason":null)")) return SseKind::Token;
  if (data.starts_with(R"({"error")")) return SseKind::Error;
  return data.starts_with("[DONE]") ? SseKind::Done : SseKind::Other;
}

Result<std::shared_ptr<SseStream>> SseStream::connect(boost::asio::io_context& io,
                                                      const std::string& path, Handlers handlers) {
  control::Socket socket = TRY(control::connect_to(io, path));
  std::shared_ptr<SseStream> stream(new SseStream(std::move(socket), std::move(handlers)));
  stream->read_more();
  return stream;
}

void SseStream::send(const std::string& request) {
  has_head_ = has_ended_ = false;
  if (auto sent = write(request); !sent) end(std::move(sent));
}

void SseStream::lost(Error why) {
  end(std::unexpected(std::move(why)));
}

void SseStream::use(std::string& unread) {
  std::string_view rest = unread;
  if (!has_head_) {
    const auto head = rest.find(kHeadEnd);
    if (head == std::string_view::npos) return;
    if (!rest.starts_with("HTTP/1.1 200"))
      return end(fail(Errc::BadRequest, std::string(rest.substr(0, rest.find(kLineEnd)))));
    rest.remove_prefix(head + kHeadEnd.size());
    has_head_ = true;
  }
  while (!is_closed()) {
    const auto line = rest.find(kLineEnd);
    if (line == std::string_view::npos) break;
    std::size_t size = 0;
    std::from_chars(rest.data(), rest.data() + line, size, 16);
    const std::size_t whole = line + 2 * kLineEnd.size() + size;
    if (rest.size() < whole) break;
    const std::string_view chunk = rest.substr(line + kLineEnd.size(), size);
    if (size > 0) read_chunk(chunk);
    rest.remove_prefix(whole);
    if (size > 0) continue;
    unread.assign(rest);  // the rest belongs to the next answer
    return end({});
  }
  unread.erase(0, unread.size() - rest.size());
}

/// A chunk may have several events.
void SseStream::read_chunk(std::string_view chunk) {
  while (chunk.starts_with(kData)) {
    chunk.remove_prefix(kData.size());
    const auto event_end = chunk.find("\n\n");
    const std::string_view data = chunk.substr(0, event_end);
    const SseKind kind = sse_kind_of(data);
    if (kind == SseKind::Token) handlers_.on_token();
    if (kind == SseKind::Error) end(fail(Errc::LeaseRevoked, std::string(data)));
    if (event_end == std::string_view::npos) return;
    chunk.remove_prefix(event_end + 2);
  }
}

void SseStream::end(Result<void> how) {
  if (std::exchange(has_ended_, true)) return;
  handlers_.on_end(std::move(how));
}

std::string sse_request(const std::string& key, const std::string& model, std::uint32_t max_tokens,
                        const std::string& more) {
  const nlohmann::json body{{"model", model},
                            {"prompt", std::vector(kPromptTokens, TenantPool::kFirstPromptToken)},
                            {"max_tokens", max_tokens},
                            {"temperature", 0},
                            {"ignore_eos", true},
                            {"stream", true}};
  const std::string text = body.dump();
  return fmt::format(
      "POST /v1/completions HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\n"
      "{}Content-Length: {}\r\n\r\n{}",
      key, more, text.size(), text);
}

}  // namespace leasehold::bench

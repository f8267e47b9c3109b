#include "worker/http/exchange.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace leasehold::http {
namespace {

constexpr std::string_view kLastChunk = "0\r\n\r\n";

void append_lines(const ServerEvent& event, std::string& out) {
  if (!event.name.empty()) out.append("event: ").append(event.name).append("\n");
  if (!event.id.empty()) out.append("id: ").append(event.id).append("\n");
  if (!event.data.empty()) out.append("data: ").append(event.data).append("\n");
  if (!event.comment.empty()) out.append(": ").append(event.comment).append("\n");
  out += '\n';
}

}  // namespace

void Exchange::append_framed(std::string_view text, std::string& out) const {
  if (!chunked) return void(out += text);
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", text.size());
  out.append(text).append("\r\n");
}

std::string Exchange::text_of(const ServerEvents& events, HttpStream::Follows follows) {
  const bool is_last = follows == HttpStream::Follows::Nothing;
  std::string text;
  if (!std::exchange(has_events, true)) {
    keep_alive = keep_alive && chunked;
    status = 200;
    text = fmt::format(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n{}{}\r\n",
        fields, chunked ? "Transfer-Encoding: chunked\r\n" : "Connection: close\r\n");
  }
  if (events.empty() && !is_last) append_framed(kComment, text);
  std::string one;
  for (const ServerEvent& event : events) {
    one.clear();
    append_lines(event, one);
    append_framed(one, text);
  }
  if (is_last && chunked) text += kLastChunk;
  return text;
}

std::string Exchange::file_head(std::uint64_t size_bytes, std::string_view content_type) const {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}\r\n",
                     content_type, size_bytes, fields, keep_alive ? "" : "Connection: close\r\n");
}

}  // namespace leasehold::http

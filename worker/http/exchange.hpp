/// One request of a connection and the form of its answer. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ipc/http/http_message.hpp"
#include "ipc/http/http_source.hpp"
#include "worker/http/exchange_labels.hpp"
#include "worker/http/http_stream.hpp"

namespace leasehold::http {

inline constexpr std::string_view kComment = ":\n\n";  ///< In a stream of events.

struct Exchange {
  PeerAddress client;  ///< The peer, or a trusted proxy's client.
  Body body_sent = Body::Sent;
  ExchangeLabels labels;
  std::string fields;  ///< Header lines of every answer.
  TimePoint begun_at;
  int status = 0;                    ///< Status of the answer, once it was sent.
  std::optional<Errc> stream_error;  ///< The error that ended a stream after its head.
  bool keep_alive = false;           ///< Another request may follow.
  bool chunked = true;               ///< The client speaks HTTP/1.1.
  bool has_events = false;           ///< The head of a stream was sent.
  bool is_message = false;           ///< Errors have the form of Anthropic's API.

  void append_framed(std::string_view text, std::string& out) const;
  /// The bytes of these events, with the head before the first ones.
  std::string text_of(const ServerEvents& events, HttpStream::Follows follows);
  /// The head of a file with this many bytes.
  std::string file_head(std::uint64_t size_bytes, std::string_view content_type) const;
};

}  // namespace leasehold::http

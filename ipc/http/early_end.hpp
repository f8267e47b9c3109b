/// Says how much of an HTTP message had arrived when its connection ended. Pure.
#pragma once

#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::http {

/// What of a message has arrived.
struct Arrived {
  bool has_begun = false;
  bool has_head = false;
  std::uint64_t body_bytes = 0;
  std::optional<std::uint64_t> body_length = {};  ///< Nothing: the head names none.
};

/// `taken_bytes`: bytes of the body that were taken out of the parser before.
template <class Parser>
Arrived arrived_in(const Parser& parser, std::uint64_t taken_bytes = 0) {
  Arrived arrived{.has_begun = parser.got_some(), .has_head = parser.is_header_done()};
  if (!arrived.has_head) return arrived;
  arrived.body_bytes = taken_bytes + parser.get().body().size();
  if (const auto length = parser.content_length()) arrived.body_length = *length;
  return arrived;
}

/// True for the errors of a message whose connection ended too early.
inline bool is_early_end(const boost::beast::error_code& error) {
  return error == boost::beast::http::error::end_of_stream ||
         error == boost::beast::http::error::partial_message;
}

/// "the connection ended after 3 of 10 bytes of the body".
std::string early_end_text(const Arrived& arrived);

/// The text of an error while a message was read.
inline std::string read_error_text(const boost::beast::error_code& error, const Arrived& arrived) {
  return is_early_end(error) ? early_end_text(arrived) : error.message();
}

}  // namespace leasehold::http

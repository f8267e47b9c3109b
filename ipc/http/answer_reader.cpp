#include "ipc/http/answer_reader.hpp"

#include <boost/asio/error.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

namespace leasehold::http {

namespace beast = boost::beast;

Errc code_of_read(const beast::error_code& error) {
  if (error == beast::error::timeout) return Errc::TimedOut;
  using enum beast::http::error;
  if (error == body_limit || error == header_limit || error == buffer_overflow)
    return Errc::MessageTooLarge;
  if (error == end_of_stream || error == partial_message) return Errc::ConnectionLost;
  const bool is_http = error.category() == make_error_code(bad_version).category();
  return is_http ? Errc::MalformedMessage : Errc::ConnectionLost;
}

AnswerReader::Parser& AnswerReader::begin() {
  parser_.emplace();
  parser_->header_limit(kMaxHeadBytes);
  return *parser_;
}

beast::error_code AnswerReader::parse() {
  beast::error_code error = beast::http::error::need_more;
  if (buffer_.size() > 0) buffer_.consume(parser_->put(buffer_.data(), error));
  return error;
}

boost::asio::mutable_buffer AnswerReader::room() {
  return buffer_.prepare(beast::read_size(buffer_, kMaxHeadBytes));
}

beast::error_code AnswerReader::received(const Transfer& read) {
  buffer_.commit(read.bytes);
  if (read.error != boost::asio::error::eof) return read.error;
  beast::error_code error = beast::http::error::end_of_stream;
  if (parser_->got_some()) parser_->put_eof(error);
  return error;
}

std::string AnswerReader::take_piece() {
  return std::exchange(parser_->get().body(), {});
}

bool AnswerReader::is_reusable() const {
  return parser_ && parser_->is_done() && parser_->keep_alive() && buffer_.size() == 0;
}

}  // namespace leasehold::http

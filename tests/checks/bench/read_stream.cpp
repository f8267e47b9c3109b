#include "tests/checks/bench/read_stream.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

namespace leasehold::bench {

void ReadStream::close() {
  closed_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void ReadStream::read_more() {
  socket_.async_read_some(
      boost::asio::buffer(chunk_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
        if (self->closed_) return;
        if (error) return self->lost({Errc::ConnectionLost, error.message()});
        self->unread_.append(self->chunk_.data(), size);
        self->use(self->unread_);
        if (!self->closed_) self->read_more();
      });
}

Result<void> ReadStream::write(std::string_view text) {
  boost::system::error_code failed;
  boost::asio::write(socket_, boost::asio::buffer(text), failed);
  if (failed) return fail(Errc::ConnectionLost, failed.message());
  return {};
}

}  // namespace leasehold::bench

#include "tests/checks/bench/light_stream.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "ipc/control/peer.hpp"

namespace leasehold::bench {
namespace {

using control::Json;

/// The worker's error for a refused call.
Error error_of(const Json& message) {
  const Json& error = message["error"];
  const std::string detail = error.value("message", std::string("no message"));
  const Json data = error.value("data", Json::object());
  const auto code = errc_from_name(data.value("code", std::string()));
  return {code.value_or(Errc::SystemError), detail};
}

std::string call_line(int id, std::string_view method, const Json& params) {
  const Json call = {
      {"jsonrpc", "2.0"}, {"id", id}, {"method", std::string(method)}, {"params", params}};
  return call.dump() + "\n";
}

}  // namespace

LineKind kind_of(std::string_view line) {
  // {"jsonrpc":"2.0","method":"token.emitted","params":{… : text of the model comes after "params",
  // so it cannot imitate a method.
  const std::string_view head = line.substr(0, line.find("\"params\""));
  if (head.find("\"method\":\"token.emitted\"") != std::string_view::npos) return LineKind::Token;
  if (head.find("\"method\":\"request.completed\"") != std::string_view::npos)
    return LineKind::Completed;
  return LineKind::Other;
}

Result<std::shared_ptr<LightStream>> LightStream::open(boost::asio::io_context& io,
                                                       const std::string& address,
                                                       const wire::RequestSubmit& generate,
                                                       Handlers handlers) {
  control::Socket socket = TRY(control::connect_to(io, address));
  const std::string calls =
      call_line(1, wire::ConnectionAuthenticate::kMethod,
                wire::ConnectionAuthenticate{.token = generate.token}.to_json()) +
      call_line(2, wire::RequestSubmit::kMethod, generate.to_json());
  std::shared_ptr<LightStream> stream(new LightStream(std::move(socket), std::move(handlers)));
  TRY(stream->write(calls));
  stream->read_more();
  return stream;
}

void LightStream::lost(Error why) {
  end(std::unexpected(std::move(why)));
}

void LightStream::use(std::string& unread) {
  std::size_t begin = 0;
  for (auto at = unread.find('\n'); at != std::string::npos && !is_closed();
       at = unread.find('\n', begin)) {
    read_line(std::string_view(unread).substr(begin, at - begin));
    begin = at + 1;
  }
  unread.erase(0, begin);
}

void LightStream::read_line(std::string_view line) {
  const LineKind kind = kind_of(line);
  if (kind == LineKind::Token) return handlers_.on_token();
  const Json message = Json::parse(line, nullptr, false);
  if (!message.is_object())
    return end(fail(Errc::MalformedMessage, "a line from the worker must be a JSON object"));
  if (kind == LineKind::Completed) {
    return end(wire::RequestCompleted::from_json(message.value("params", Json::object())));
  }
  if (message.contains("error")) end(std::unexpected(error_of(message)));
}

void LightStream::end(Result<wire::RequestCompleted> how) {
  close();
  handlers_.on_end(std::move(how));
}

}  // namespace leasehold::bench

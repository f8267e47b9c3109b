// Streams a story for a tenant and says which leases it ran under: story TENANT [MAX_TOKENS]
#include <cstdlib>
#include <iostream>
#include <leasehold/client.hpp>

namespace api = leasehold::api;

int fail(const api::Error& error) {
  std::cerr << "story: " << error.detail << " (" << error.code << "); " << error.next << '\n';
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: story TENANT [MAX_TOKENS]\n", 2;
  auto session = api::Session::connect({argv[1]});  // the broker of $LEASEHOLD_BROKER
  if (!session) return fail(session.error());

  api::Request request{"Once upon a time"};
  request.max_tokens = argc > 2 ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 60;
  auto stream = session->generate(request);
  if (!stream) return fail(stream.error());
  while (auto token = stream->next()) std::cout << token->text << std::flush;

  const auto completed = stream->result();
  if (!completed) return fail(completed.error());
  std::cout << completed->text << '\n';
  std::cerr << completed->tokens << " tokens, " << completed->reason << ", leases:";
  for (const std::string& lease : completed->leases) std::cerr << ' ' << lease;
  std::cerr << '\n';
}

// What `/health` says of a worker that serves nothing.
#include <catch2/catch.hpp>

#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {

TEST_CASE("http: a worker whose model file was truncated is unhealthy until the file is back") {
  namespace fs = std::filesystem;
  System system({.start_worker = false, .model_name = "model.gguf"});
  const std::string model = system.directory() / "model.gguf";
  const std::string address = system.directory() / "http.sock";
  system.start_ready_worker("w1", {}, {"--http", address});
  const auto health = [&] {
    HttpClient client(address);
    client.write("GET /health HTTP/1.1\r\nHost: h\r\n\r\n");
    return client.reply();
  };
  REQUIRE(health().status == 200);

  fs::resize_file(model, fs::file_size(model) / 2);
  REQUIRE(system.brokerctl({"revoke", to_string(system.engine_leases().at(0).lease)}) == 0);

  REQUIRE(eventually([&] { return health().status == 503; }));
  CHECK(health().body.find(model) == std::string::npos);  // clients without a key read it
  fs::copy_file(bundled_model_path(), model + ".new");
  fs::rename(model + ".new", model);
  CHECK(eventually([&] { return health().status == 200; }));
}

TEST_CASE("http: a worker that an operator drains or replaces is unhealthy until it is undrained") {
  System system({.start_worker = false});
  const std::string address = system.directory() / "http.sock";
  system.start_ready_worker("w1", {}, {"--http", address});
  system.start_ready_worker("w2");
  const auto is_health = [&](int status) {
    return eventually([&] {
      HttpClient client(address);
      client.write("GET /health HTTP/1.1\r\nHost: h\r\n\r\n");
      return client.reply().status == status;
    });
  };
  REQUIRE(is_health(200));

  REQUIRE(system.brokerctl({"drain", "--worker", "w1"}) == 0);
  CHECK(is_health(503));
  REQUIRE(system.brokerctl({"undrain", "--worker", "w1"}) == 0);
  CHECK(is_health(200));
  REQUIRE(system.brokerctl({"worker", "replace", "w1", "w2"}) == 0);
  CHECK(is_health(503));
  REQUIRE(system.brokerctl({"undrain", "--worker", "w1"}) == 0);
  CHECK(is_health(200));
}

}  // namespace leasehold::testing

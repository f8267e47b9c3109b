#include "ipc/control/messages/json_fields.hpp"
#include "tools/brokerctl/arguments/commands.hpp"

namespace leasehold::brokerctl {

void add_requests(Commands& commands) {
  struct Values {
    std::string tenant, worker;
    CancelRequests cancel;
  };
  const auto values = std::make_shared<Values>();
  const auto lists = commands.add_noun(
      {"requests", "Requests of all workers with state, tokens and age",
       "brokerctl requests\nbrokerctl requests --tenant alice --watch", "request"},
      [values]() -> Result<Verb> {
        return ListRequests{.tenant = TRY(parse_optional<TenantId>(values->tenant)),
                            .worker = values->worker};
      });
  auto* cancel = commands.add_verb(
      *lists[0],
      {"cancel",
       "End requests in any state with RequestCancelled, which clients do not retry; other "
       "requests of the tenant go on",
       "brokerctl requests cancel alice/req-7f3a\nbrokerctl requests cancel chatcmpl-req-7f3a\n"
       "brokerctl requests cancel --tenant alice --all"},
      [values]() -> Result<Verb> {
        CancelRequests query = values->cancel;
        query.tenant = TRY(parse_optional<TenantId>(values->tenant));
        query.worker = values->worker;
        if (query.all && !query.tenant)
          return fail(Errc::BadRequest, "--all cancels the requests of a tenant; add --tenant");
        if (query.all != query.ids.empty())
          return fail(Errc::BadRequest, "name requests, or give --tenant and --all");
        return query;
      });
  cancel
      ->add_option("id", values->cancel.ids,
                   "Ids from `brokerctl requests`, or ids or X-Request-Ids of HTTP answers, whose "
                   "choices all end")
      ->check([](const std::string& text) { return check_text(TextRule::Sentence, text); });
  cancel->add_flag("--all", values->cancel.all, "Every request of the tenant");
  for (CLI::App* command : {lists[0], lists[1], lists[2], cancel}) {
    add_name(*command, "--tenant", values->tenant, "Only requests of this tenant");
    add_name(*command, "--worker", values->worker, "Only requests on this worker");
  }
}

}  // namespace leasehold::brokerctl

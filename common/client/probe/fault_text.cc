#include "common/client/probe/fault_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/utc_time.h"
#include "common/client/probe/greeting.h"

namespace distro {
namespace {

struct Sentence {
  FaultKind kind;
  std::string what, remedy;
};

std::string Names(const std::vector<std::string>& names) {
  return names.empty() ? "no name at all" : absl::StrJoin(names, ", ");
}

Sentence UntrustedCa(const TlsHandshake& seen, const CertificateWishes& wishes) {
  const std::string issuer = seen.certificate ? seen.certificate->issuer : "an unknown CA";
  const std::string of = absl::StrCat("its certificate was issued by ", issuer);
  const std::string words = absl::StrCat(" (", seen.untrusted, ")");
  if (wishes.ca_file.empty()) {
    return {FaultKind::kUntrusted, absl::StrCat(of, ", which this system does not know", words),
            "give --ca with the file of that CA"};
  }
  const bool same_name = std::ranges::count(wishes.ca_names, issuer) > 0;
  return {FaultKind::kUntrusted,
          absl::StrCat(of, ", and ", wishes.ca_file, " holds ",
                       same_name ? "another CA of this name"
                                 : absl::StrCat("only ", absl::StrJoin(wishes.ca_names, ", ")),
                       words),
          "give --ca with the file of the CA of the aggregator"};
}

Sentence OtherName(const TlsHandshake& seen, const CertificateWishes& wishes) {
  return {
      FaultKind::kNameMismatch,
      absl::StrCat("its certificate is for ",
                   Names(seen.certificate ? seen.certificate->names : std::vector<std::string>()),
                   ", not for ", wishes.server_name),
      "use an address whose host is one of these names, give one of them with --server_name, "
      "or issue the certificate for this name too"};
}

Sentence OutOfDate(const TlsHandshake& seen, const CertificateWishes& wishes) {
  const CertificateFacts& facts = *seen.out_of_date;
  const bool of_ca = seen.certificate && facts.subject != seen.certificate->subject;
  const std::string whose =
      of_ca ? absl::StrCat("the certificate of its CA ", facts.subject) : "its certificate";
  const std::string clock =
      absl::StrCat(", and the clock of this machine says ", DateText(wishes.now));
  if (facts.not_before > wishes.now) {
    return {FaultKind::kCertificateDates,
            absl::StrCat(whose, " begins ", DateText(facts.not_before), clock),
            "set the clock of this machine if it is wrong; otherwise that of the machine that "
            "issued the "
            "certificate, and issue it again"};
  }
  return {
      FaultKind::kCertificateDates,
      absl::StrCat(whose, " ended ", DateText(facts.not_after), clock),
      "renew the certificate at the aggregator, or set the clock of this machine if it is wrong"};
}

ConnectionFault Fault(FaultKind kind, absl::string_view address, absl::string_view what,
                      std::string remedy) {
  return {.kind = kind, .what = absl::StrCat(address, ": ", what), .remedy = std::move(remedy)};
}

}  // namespace

ConnectionFault Unresolved(absl::string_view address, absl::string_view host,
                           const absl::Status& why) {
  return Fault(FaultKind::kUnresolved, address,
               absl::StrCat("the name ", host, " does not resolve (", why.message(), ")"),
               "check the host in the address, and the DNS of this machine");
}

ConnectionFault Unreachable(absl::string_view address, const absl::Status& why) {
  if (absl::IsDeadlineExceeded(why)) {
    return Fault(FaultKind::kUnreachable, address, absl::StrCat("no connection: ", why.message()),
                 "a firewall drops the packets or the host is down: open the port for this "
                 "machine, or check the address");
  }
  return Fault(
      FaultKind::kUnreachable, address, absl::StrCat("no connection: ", why.message()),
      "start the aggregator, or check host and port (7700 unless --listen says otherwise)");
}

ConnectionFault PlaintextServer(absl::string_view address) {
  return Fault(FaultKind::kTlsMismatch, address,
               "the server speaks plaintext, and this program expects TLS",
               "start the aggregator with a certificate, or, on a network that is trusted, give "
               "this program --insecure instead of CA and credential");
}

ConnectionFault TlsServer(absl::string_view address) {
  return Fault(FaultKind::kTlsMismatch, address,
               "the server speaks TLS, and --insecure asks for plaintext",
               "give --ca and --token_file (or --cert and --key) instead of --insecure");
}

ConnectionFault Http1Server(absl::string_view address) {
  return Fault(FaultKind::kOtherService, address,
               "a web server answers (HTTP/1), such as that for metrics and the status page",
               "give the other port of the aggregator: that of --listen, 7700 unless it was set "
               "otherwise, not that of --http, 7701");
}

ConnectionFault UnknownServer(absl::string_view address, absl::string_view first_bytes) {
  return Fault(FaultKind::kOtherService, address,
               absl::StrCat("no aggregator answers, but something else that begins with ",
                            Excerpt(first_bytes)),
               "check host and port (7700 unless --listen says otherwise)");
}

ConnectionFault NoHttp2(absl::string_view address, absl::string_view alpn) {
  return Fault(FaultKind::kOtherService, address,
               absl::StrCat("the server speaks TLS, and does not offer HTTP/2 in it (ALPN: ",
                            alpn.empty() ? "none" : alpn, ")"),
               "check host and port; a proxy on the way must pass TLS through, or speak HTTP/2");
}

ConnectionFault NoAggregator(absl::string_view address) {
  return Fault(FaultKind::kOtherService, address,
               "the server speaks HTTP/2, and has no health service as an aggregator has",
               "check host and port (7700 unless --listen says otherwise)");
}

ConnectionFault NoAnswer(absl::string_view address, const absl::Status& why) {
  return Fault(
      FaultKind::kNoAnswer, address,
      absl::StrCat("the connection opens, and no aggregator answers on it: ", why.message()),
      "check whether the aggregator runs, and what is on the way: a proxy or load "
      "balancer with nothing behind it, a firewall");
}

ConnectionFault NotThroughProxy(absl::string_view address, const Proxy& proxy,
                                const absl::Status& why,
                                const std::optional<ConnectionFault>& direct) {
  const std::string through = absl::StrCat("through the proxy ", proxy.url, " that ",
                                           proxy.variable, " names: ", why.message());
  const std::string check = "check whether the proxy runs, and allows CONNECT to this port";
  if (!direct) {
    return Fault(FaultKind::kNoAnswer, address,
                 absl::StrCat("it answers this machine, but not ", through),
                 absl::StrCat("to call without the proxy, add the host to no_proxy or unset the "
                              "variable; otherwise ",
                              check));
  }
  const absl::string_view seen = absl::string_view(direct->what).substr(address.size() + 2);
  return Fault(FaultKind::kNoAnswer, address,
               absl::StrCat("no aggregator answers ", through, "; nor without it: ", seen),
               absl::StrCat(check, "; ", direct->remedy));
}

ConnectionFault BadCertificate(absl::string_view address, const TlsHandshake& seen,
                               const CertificateWishes& wishes) {
  std::vector<Sentence> sentences;
  if (!seen.untrusted.empty()) sentences.push_back(UntrustedCa(seen, wishes));
  if (seen.name_mismatch) sentences.push_back(OtherName(seen, wishes));
  if (seen.out_of_date) sentences.push_back(OutOfDate(seen, wishes));
  std::vector<std::string> whats;
  for (const Sentence& sentence : sentences) whats.push_back(sentence.what);
  return Fault(sentences.front().kind, address, absl::StrJoin(whats, "; besides, "),
               sentences.front().remedy);
}

ConnectionFault RefusedByServer(absl::string_view address, absl::string_view cert_file,
                                absl::string_view alert) {
  if (cert_file.empty()) return NoAnswer(address, absl::UnavailableError(alert));
  return Fault(FaultKind::kOwnCertificate, address,
               absl::StrCat("the server refuses the certificate in ", cert_file, " (", alert, ")"),
               "give one that the CA of the aggregator has issued and that has not ended");
}

}  // namespace distro

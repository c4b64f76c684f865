package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// clientTimeout bounds the run time of a client.
const clientTimeout = time.Minute

// RiemannClient runs `riemann-client ARGS... HOST PORT` and returns its standard output.
// A client that fails, fails the test.
func RiemannClient(t testing.TB, addr string, args ...string) string {
	t.Helper()
	out, err := TryRiemannClient(t, addr, args...)
	assert.OK(t, err, "riemann-client %s: \n%s", strings.Join(args, " "), out)
	return out
}

// TryRiemannClient is Client for one that may fail. With an error it also returns what the
// client wrote to standard error.
func TryRiemannClient(t testing.TB, addr string, args ...string) (string, error) {
	t.Helper()
	OnlyConformance(t, "riemann-client")
	exe, err := exec.LookPath("riemann-client")
	assert.OK(t, err, "this test needs riemann-client: apt-get install riemann-c-client")
	host, port, err := net.SplitHostPort(addr)
	assert.OK(t, err)
	return runClient(t, exe, append(args, host, port)...)
}

// RiemannRuby runs a ruby script with the args as ARGV, after requiring riemann/client. It
// returns the script's standard output. A script that fails, fails the test.
func RiemannRuby(t testing.TB, script string, args ...string) string {
	t.Helper()
	OnlyConformance(t, "Ruby and its client of Riemann")
	exe, err := exec.LookPath("ruby")
	assert.OK(t, err, "this test needs ruby and its client: apt-get install ruby-riemann-client")
	out, err := runClient(t, exe, append([]string{"-rjson", "-ropenssl", "-rriemann/client", "-e", script}, args...)...)
	assert.OK(t, err, "ruby: \n%s", out)
	return out
}

func runClient(t testing.TB, exe string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		return out.String() + errs.String(), err
	}
	return out.String(), nil
}

// An RiemannEvent is an event in the clients' output. A nil pointer is an absent value.
type RiemannEvent struct {
	Time         int64             `json:"time"`
	State        string            `json:"state"`
	Service      string            `json:"service"`
	Host         string            `json:"host"`
	Description  string            `json:"description"`
	Tags         []string          `json:"tags"`
	TTL          *float64          `json:"ttl"`
	Attributes   map[string]string `json:"attributes"`
	MetricSint64 *int64            `json:"metric_sint64"`
	MetricD      *float64          `json:"metric_d"`
	MetricF      *float64          `json:"metric_f"`
}

// RiemannQuery sends a query with riemann-client. args set how it connects.
func RiemannQuery(t testing.TB, addr, query string, args ...string) []RiemannEvent {
	t.Helper()
	return riemannEvents(t, RiemannClient(t, addr, append([]string{"query", query, "--json"}, args...)...))
}

// rubyConnect makes a client for ARGV's host and port, with TLS if certificate
// files follow. For TLS the library's user has to open the socket.
const rubyConnect = `
host, port, cafile, certfile, keyfile = ARGV
if cafile
  Riemann::Client::TCP.socket_factory = proc do |options|
    ctx = OpenSSL::SSL::SSLContext.new
    ctx.verify_mode = OpenSSL::SSL::VERIFY_PEER
    ctx.ca_file = cafile
    ctx.cert = OpenSSL::X509::Certificate.new(File.read(certfile))
    ctx.key = OpenSSL::PKey.read(File.read(keyfile))
    ssl = OpenSSL::SSL::SSLSocket.new(TCPSocket.new(host, port.to_i), ctx)
    ssl.sync_close = true
    ssl.connect
    ssl
  end
end
c = Riemann::Client.new(host: host, port: port.to_i, timeout: 20)
`

// rubyPrint prints the result of a query as JSON.
const rubyPrint = `
puts JSON.generate(c.query(QUERY).events.to_a.map { |e|
  h = {}
  %w(time state service host description tags ttl metric_sint64 metric_d metric_f).each { |f| h[f] = e.send(f) }
  h['attributes'] = e.attributes.to_a.map { |a| [a.key, a.value] }.to_h
  h
})
`

// RiemannRubySend sends events with the ruby client, over TCP, with certs over TLS, or
// over UDP, which is not answered. Each of hashes is ruby code for an event's hash.
func RiemannRubySend(t testing.TB, addr string, udp bool, certs *Certificates, hashes ...string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(rubyConnect)
	send := "c.tcp"
	if udp {
		send = "c.udp"
	}
	for _, h := range hashes {
		b.WriteString(send + " << (" + h + ")\n")
	}
	RiemannRuby(t, b.String(), rubyArgs(t, addr, certs)...)
}

// RiemannRubyQuery sends a query with the ruby client.
func RiemannRubyQuery(t testing.TB, addr string, certs *Certificates, query string) []RiemannEvent {
	t.Helper()
	quoted, err := json.Marshal(query)
	assert.OK(t, err)
	// In a ruby string, #{ begins code.
	text := strings.ReplaceAll(string(quoted), "#", `\#`)
	return riemannEvents(t, RiemannRuby(t, rubyConnect+"QUERY = "+text+"\n"+rubyPrint, rubyArgs(t, addr, certs)...))
}

func rubyArgs(t testing.TB, addr string, certs *Certificates) []string {
	host, port, err := net.SplitHostPort(addr)
	assert.OK(t, err)
	args := []string{host, port}
	if certs != nil {
		args = append(args, certs.CA, certs.ClientCert, certs.ClientKey)
	}
	return args
}

func riemannEvents(t testing.TB, out string) (all []RiemannEvent) {
	t.Helper()
	assert.OK(t, json.Unmarshal([]byte(out), &all), "of:\n%s", out)
	return all
}

package apm

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/web"
	"carronade/protocol"
	"carronade/units"
)

// Inspects implements protocol.Inspector.
func (Kind) Inspects(o *protocol.Option) bool {
	switch o.Group {
	case groupSecurity:
		return true
	case groupConn:
		return o.Name != "sticky" && o.Name != "max-in-flight"
	case groupIndex:
		return !slices.Contains([]string{"index-pattern", "index-wait", "index-still"}, o.Name)
	}
	return slices.Contains([]string{"http-version", "header", "intake"}, o.Name)
}

// Inspect implements protocol.Inspector. It asks each server for its version and sends a request
// without events, as a run does first. Answers have the server's time.
func (Kind) Inspect(ctx context.Context, spec protocol.Spec) (protocol.Inspection, error) {
	c, err := parseConfig(spec, false)
	if err != nil {
		return protocol.Inspection{}, err
	}
	in := protocol.Inspection{Addresses: c.bases, Connections: c.clients}
	if c.proxy != nil {
		in.Addresses = []string{c.proxy.Host}
	}
	client := c.newClient()
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	var index []protocol.Finding
	wg.Go(func() { index = c.inspectIndex(ctx) })
	servers := make([]server, len(c.bases))
	in.Findings, err = web.InspectEach(c.bases, "an APM server", func(i int, base string) (findings []protocol.Finding, err error) {
		if servers[i], findings, err = c.inspectServer(ctx, client, base); err != nil {
			err = c.explain("connect to "+c.url(base, "/"), err)
		}
		return findings, err
	})
	wg.Wait()
	if err != nil {
		return in, err
	}
	in.Findings = append(in.Findings, versionFinding(servers))
	in.Findings = append(in.Findings, index...)
	return in, nil
}

// inspectServer checks one server.
func (c *config) inspectServer(ctx context.Context, client *http.Client, base string) (server, []protocol.Finding, error) {
	v, err := c.probeOne(ctx, client, base)
	if err != nil {
		return v, nil, err
	}
	var out []protocol.Finding
	if c.proxy == nil {
		contact := c.dialer.Contact(ctx, base)
		out = append(out, contact.Findings(time.Now())...)
	}
	login := protocol.Finding{Check: "login", Found: fmt.Sprintf("%s accepts requests without a login", base)}
	if c.login != "none" {
		login.Found = fmt.Sprintf("%s accepts the %s", base, c.login)
	}
	if c.tls && c.dialer.TLS.InsecureSkipVerify {
		login.Level, login.Found = protocol.LevelNote, login.Found+", and any certificate of it is accepted"
		login.Effect = "another server could answer instead; times are not affected"
		login.Fix = "give --tls-ca FILE instead of --tls-insecure-skip-verify"
	}
	out = append(out, login)
	if v.Ready != nil {
		f := protocol.Finding{Check: "publish_ready", Found: base + " is ready to publish events"}
		if !*v.Ready {
			f.Level = protocol.LevelWarning
			f.Found = base + " is not ready to publish events"
			f.Effect = "it accepts events that may never be indexed, and answers faster or slower than when they are"
			f.Fix = "start Elasticsearch, install the APM integration, and look at the server's log"
		}
		out = append(out, f)
	}
	return v, append(out, c.clock(ctx, client, base)), nil
}

// versionFinding is about the versions of all servers.
func versionFinding(servers []server) protocol.Finding {
	f := protocol.Finding{Check: "version of the server"}
	standin := !slices.ContainsFunc(servers, func(v server) bool { return !v.Standin })
	switch all := versions(servers); {
	case standin:
		f.Found = "the server is a stand-in of carronade"
	case all == "":
		f.Level, f.Found = protocol.LevelUnknown, "the server does not report its version with this login"
	case strings.Contains(all, ", "):
		f.Level = protocol.LevelNote
		f.Found = "the servers have different versions: " + all
		f.Effect = "connections to different servers may be fast in different ways"
		f.Fix = "finish the upgrade first"
	default:
		f.Found = "APM Server " + all
	}
	return f
}

// clock compares the server's clock with this machine's.
func (c *config) clock(ctx context.Context, client *http.Client, base string) protocol.Finding {
	host, _, _ := net.SplitHostPort(base)
	if c.proxy == nil && conn.IsLocal(base) {
		return protocol.Finding{Check: "clock of the server", Found: "the server at " + host + " runs on this machine, by its clock"}
	}
	began := time.Now()
	a, err := c.exchange(ctx, client, http.MethodGet, c.url(base, "/"), nil)
	ended := time.Now()
	if err != nil {
		return protocol.Finding{Check: "clock of the server", Level: protocol.LevelUnknown, Found: fmt.Sprintf("the time of %s is not known: %v", host, err)}
	}
	return clockFinding(host, a.header.Get("Date"), began, ended)
}

// The differences of clocks that matter: events are stored by their times, which are this
// machine's.
const (
	clockNote    = 2 * time.Second
	clockWarning = time.Minute
)

// clockFinding compares a Date header with the times around its request. The header has whole
// seconds, so the server's time is in [date, date + 1s) at some moment between began and ended.
func clockFinding(host, date string, began, ended time.Time) protocol.Finding {
	f := protocol.Finding{Check: "clock of the server"}
	at, err := http.ParseTime(date)
	if err != nil {
		f.Level, f.Found = protocol.LevelUnknown, "the answers of "+host+" have no time"
		return f
	}
	least, most := at.Sub(ended), at.Add(time.Second).Sub(began)
	bound := (most - least) / 2
	ahead := least + bound
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	f.Found = fmt.Sprintf("the clock of %s is %s %s this machine's, give or take %s", host,
		units.FormatDuration(ahead.Abs().Round(10*time.Millisecond)), direction, units.FormatDuration(bound.Round(10*time.Millisecond)))
	if ahead.Abs() <= bound {
		f.Found = fmt.Sprintf("the clock of %s agrees with this machine's, give or take %s", host, units.FormatDuration((ahead.Abs() + bound).Round(10*time.Millisecond)))
	}
	if surely := ahead.Abs() - bound; surely > clockNote {
		f.Level = protocol.LevelNote
		f.Effect = "events are stored under this machine's times: queries by the server's time find others"
		f.Fix = "synchronize both clocks (chrony or systemd-timesyncd)"
		if surely > clockWarning {
			f.Level = protocol.LevelWarning
			f.Effect = "events are stored under this machine's times: they miss the time range, and counts of a recent range are too low"
		}
	}
	return f
}

// inspectIndex checks the store behind the server, if the run counts its documents.
func (c *config) inspectIndex(ctx context.Context) []protocol.Finding {
	if c.index == nil {
		return nil
	}
	x := newIndex(c.index, c.logf)
	defer x.client.CloseIdleConnections()
	f := protocol.Finding{Check: "index"}
	if err := x.identify(ctx); err != nil {
		e := x.explain("", err)
		f.Level = protocol.LevelError
		f.Found = fmt.Sprintf("the store at %s does not answer: %v", c.index.url, e.Err)
		f.Effect, f.Fix = "a run fails when it starts, since it counts documents there", e.Hint
		return []protocol.Finding{f}
	}
	health, nodes := x.clusterHealth(ctx)
	f.Found = fmt.Sprintf("%s answers at %s", x.store, c.index.url)
	if health != "" {
		f.Found += fmt.Sprintf("; its health is %s, with %s", health, units.Plural(nodes, "node"))
	}
	if health == "red" {
		f.Level = protocol.LevelWarning
		f.Effect = "some indices take in nothing: events are rejected or wait"
		f.Fix = "look at " + c.index.url + "/_cluster/allocation/explain"
	}
	return []protocol.Finding{f}
}

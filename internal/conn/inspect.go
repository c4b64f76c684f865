package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"carronade/protocol"
	"carronade/units"
)

// A Contact is what was found by connecting to an address, before a run.
type Contact struct {
	Addr string               // HOST:PORT, as given
	IPs  []string             // that its name resolves to
	Errs map[string]error     // by IP: why no connection could be made
	Took time.Duration        // the shortest time that a connection took, without TLS
	TLS  *tls.ConnectionState // nil without TLS, or if the handshake failed
	Err  error                // nothing was reached, or the handshake failed
}

// Contact resolves an address, connects to each of its IPs, and makes a TLS handshake with
// the first that answers. It sends nothing else, and returns when the context ends.
func (d *Dialer) Contact(ctx context.Context, addr string) Contact {
	c := Contact{Addr: addr, Errs: map[string]error{}}
	if c.Err = Allowed(addr); c.Err != nil {
		return c
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		c.Err = err
		return c
	}
	if c.IPs, c.Err = net.DefaultResolver.LookupHost(ctx, host); c.Err != nil {
		return c
	}
	slices.Sort(c.IPs)
	c.IPs = slices.Compact(c.IPs)
	c.IPs = c.IPs[:min(len(c.IPs), mostIPs)]
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		first net.Conn
	)
	for _, ip := range c.IPs {
		wg.Go(func() {
			start := time.Now()
			conn, err := plain.DialContext(ctx, "tcp", net.JoinHostPort(ip, port))
			took := time.Since(start)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				c.Errs[ip] = err
			case first == nil:
				first, c.Took = conn, took
			default:
				conn.Close()
				c.Took = min(c.Took, took)
			}
		})
	}
	wg.Wait()
	if first == nil {
		c.Err = c.Errs[c.IPs[0]]
		return c
	}
	defer first.Close()
	if d.TLS == nil {
		return c
	}
	cfg := d.TLS.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	secured := tls.Client(first, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		c.Err = &TLSError{err}
		return c
	}
	state := secured.ConnectionState()
	c.TLS = &state
	return c
}

// mostIPs limits the IPs of a name that are tried.
const mostIPs = 16

// When a certificate is about to expire.
const (
	expiresNow  = 24 * time.Hour
	expiresSoon = 14 * 24 * time.Hour
)

// Findings returns what a contact means for a run that connects to it at the moment now.
func (c *Contact) Findings(now time.Time) []protocol.Finding {
	f := protocol.Finding{Check: "address " + c.Addr}
	host, _, _ := net.SplitHostPort(c.Addr)
	resolved := ""
	if len(c.IPs) > 0 && !slices.Equal(c.IPs, []string{host}) {
		resolved = " (" + strings.Join(c.IPs, ", ") + ")"
	}
	switch {
	case c.Err != nil:
		f.Level = protocol.LevelError
		f.Found = fmt.Sprintf("%s%s does not accept connections: %s", c.Addr, resolved, reason(c.Err))
		f.Effect = "a run cannot use this address, and fails if it has no other"
		f.Fix = Hint(c.Err, false)
		if f.Fix == "" {
			f.Fix = "check the address, the firewall between, and whether the server is running"
		}
	case len(c.Errs) > 0 && host != "localhost": // that has an IP of each version
		ip, silent := c.worstIP()
		f.Level, f.Effect = protocol.LevelNote, "each connection may try such an IP first, which costs a moment"
		if silent {
			f.Level, f.Effect = protocol.LevelWarning, "each connection may wait for such an IP first: clients start late, and reconnect late"
		}
		f.Found = fmt.Sprintf("%d of the %d IPs of %s do not accept connections, such as %s: %s", len(c.Errs), len(c.IPs), c.Addr, ip, reason(c.Errs[ip]))
		f.Fix = "start the server there, or remove the IP from the name's records"
	default:
		f.Found = fmt.Sprintf("%s%s accepts connections within %s", c.Addr, resolved, units.FormatDuration(c.Took.Round(time.Microsecond)))
	}
	out := []protocol.Finding{f}
	if c.TLS != nil {
		out = append(out, certificate(c.Addr, c.TLS, now))
	}
	return out
}

// worstIP returns an IP without a connection, and whether it did not even refuse one.
func (c *Contact) worstIP() (ip string, silent bool) {
	for _, k := range c.IPs {
		err := c.Errs[k]
		if err != nil && (ip == "" || !silent && IsTimeout(err)) {
			ip, silent = k, IsTimeout(err)
		}
	}
	return ip, silent
}

// reason is an error of connecting without the address, which is named next to it.
func reason(err error) string {
	var (
		op  *net.OpError
		sys *os.SyscallError
		dns *net.DNSError
	)
	switch {
	case errors.As(err, &dns) && dns.IsTimeout:
		return "the name servers do not answer"
	case errors.As(err, &dns):
		return "the name is not known (" + dns.Err + ")"
	case IsTimeout(err):
		return "no answer in time"
	case errors.As(err, &op) && errors.As(op.Err, &sys):
		return sys.Err.Error()
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}

// firstEnd is when the first certificate of a chain expires.
func firstEnd(chain []*x509.Certificate) time.Time {
	ends := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(ends) {
			ends = c.NotAfter
		}
	}
	return ends
}

// certificate is the finding about a server's certificate.
func certificate(addr string, s *tls.ConnectionState, now time.Time) protocol.Finding {
	f := protocol.Finding{Check: "certificate " + addr}
	version := tls.VersionName(s.Version)
	if len(s.PeerCertificates) == 0 {
		f.Level, f.Found = protocol.LevelUnknown, fmt.Sprintf("%s speaks %s and shows no certificate", addr, version)
		return f
	}
	ends := firstEnd(s.PeerCertificates)
	for i, chain := range s.VerifiedChains { // a server may also send certificates that no client needs
		if end := firstEnd(chain); i == 0 || end.After(ends) {
			ends = end
		}
	}
	left, day := ends.Sub(now), ends.UTC().Format(time.DateOnly)
	const fix = "renew the server's certificate"
	switch {
	case left <= 0:
		f.Level, f.Fix = protocol.LevelWarning, fix
		f.Found = fmt.Sprintf("the certificate of %s (%s) expired on %s", addr, version, day)
		f.Effect = "only clients that accept any certificate can connect"
	case left < expiresNow:
		f.Level, f.Fix = protocol.LevelWarning, fix
		f.Found = fmt.Sprintf("the certificate of %s (%s) expires in %s", addr, version, units.FormatDuration(left.Round(time.Minute)))
		f.Effect = "connections that are made after that fail, also in the middle of a run"
	case left < expiresSoon:
		f.Level, f.Fix = protocol.LevelNote, fix
		f.Found = fmt.Sprintf("the certificate of %s (%s) expires on %s, in %d days", addr, version, day, int(left.Hours()/24))
		f.Effect = "connections that are made after that fail"
	default:
		f.Found = fmt.Sprintf("%s speaks %s, with a certificate until %s", addr, version, day)
	}
	return f
}

// IsLocal reports whether an address, HOST:PORT, is one of this machine. Names are not looked
// up, except localhost.
func IsLocal(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

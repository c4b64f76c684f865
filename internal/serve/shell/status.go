package shell

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"carronade/internal/system"
)

// status says what is in use and what is queued.
func (s *session) status(words []string) error {
	if len(words) != 1 {
		return s.usage(words)
	}
	for _, kind := range []string{"kafka", "riemann"} {
		if v := s.system[kind]; v.URL != "" {
			s.say("%s", s.serverLine(strings.ToUpper(kind[:1])+kind[1:], v))
			if v.Dir != "" {
				s.say("Using %s", s.branchLine(v))
			}
		}
	}
	apm := s.system["apm"]
	if s.es.URL == "" && apm.URL == "" && s.system["kafka"].URL == "" && s.system["riemann"].URL == "" {
		s.say("Kafka not configured (hint: kafka use <url>)")
	}
	s.say("%s", s.clusterLine())
	if apm.URL == "" {
		s.say("ApmServer not configured (hint: apm use <dir>)")
	} else {
		s.say("%s", s.serverLine("ApmServer", apm))
		if apm.using() != "" {
			s.say("Using %s", s.branchLine(apm))
		}
	}
	return s.queue()
}

// dialWithin is how long status waits for a server to accept a connection.
const dialWithin = 2 * time.Second

func (s *session) serverLine(name string, v *server) string {
	state := s.out.paint(green, "running")
	if !s.answers(v.URL) {
		state = "not running"
	}
	return fmt.Sprintf("%s [%s]: %s", name, v.URL, state)
}

// answers reports whether something accepts connections at an address.
func (s *session) answers(address string) bool {
	u, err := url.Parse(address)
	if err != nil || s.reach(address) != nil { // another session of the user may have been allowed more
		return false
	}
	host := u.Host
	if u.Port() == "" {
		port := "80"
		switch {
		case u.Scheme == "https":
			port = "443"
		case strings.HasPrefix(u.Scheme, "kafka"):
			port = "9092"
		case strings.HasPrefix(u.Scheme, "riemann"):
			port = "5555"
		}
		host = net.JoinHostPort(u.Hostname(), port)
	}
	d := net.Dialer{Timeout: dialWithin}
	c, err := d.DialContext(s.work, "tcp", host)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// branchLine is the line of status after Using.
func (s *session) branchLine(v *server) string {
	place := v.using() + ": "
	if _, err := os.Stat(v.Dir); err != nil {
		return fmt.Sprintf("%sCan't ch to directory %s (hint: apm use <dir>)", place, v.Dir)
	}
	now := *v
	now.Switch, _ = s.tested(v)
	v = &now
	if v.Switch.Branch == "" {
		return place + "unknown branch (hint: apm switch <branch>)"
	}
	ctx, cancel := s.soonCtx()
	defer cancel()
	if v.Switch.Checkout == "" {
		text, err := system.DescribeCommit(ctx, v.Dir, "HEAD")
		if err != nil {
			text = err.Error()
		}
		return place + v.Switch.Branch + ", " + Printable(text)
	}
	return place + v.Switch.Branch + ", " + Printable(s.builtLine(ctx, v))
}

// builtLine describes the newest build of what was switched to.
func (s *session) builtLine(ctx context.Context, v *server) string {
	entries, err := system.CachedBuilds("")
	if err != nil {
		return err.Error()
	}
	wanted := v.Switch.Revision
	if wanted != "" {
		if hash, err := system.ResolveCommit(ctx, v.Dir, wanted); err == nil {
			wanted = hash
		}
	}
	of := func(e system.CachedBuild) bool {
		return e.Repository == v.Dir && e.Branch == v.Switch.Branch && e.Command == v.Switch.Build && strings.HasPrefix(e.Revision, wanted)
	}
	i := slices.IndexFunc(entries, of)
	switch {
	case i < 0:
		return v.Switch.Checkout + " is not built yet"
	case entries[i].Failed:
		return fmt.Sprintf("%.12s could not be built", entries[i].Revision)
	}
	text, err := system.DescribeCommit(ctx, entries[i].Tree(), entries[i].Revision)
	if err != nil {
		return err.Error()
	}
	return text
}

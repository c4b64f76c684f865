package trust

import (
	"fmt"
	"time"

	"carronade/internal/host"
	"carronade/protocol"
	"carronade/units"
)

// The bounds of the rules on files, ports and networks.
const (
	smallBuffer   = 1 << 20 // bytes: at 1 Gbit/s a connection needs that much for 8 ms of round trip
	slowLoopback  = 100e6   // bytes/s: about what a network of 1 Gbit/s carries
	slowNetwork   = 1000    // Mbit/s
	mostClockBad  = 100 * time.Millisecond
	shareOfLimits = 0.5 // of a limit, above which it is worth a note
)

// openFiles is about the descriptors that connections take.
func openFiles(f *MachineFacts) protocol.Finding {
	const check = "open files"
	limit := f.Host.Limits.OpenFiles
	need := uint64(max(f.Connections, f.Clients, 1) + f.OtherFiles)
	if limit == 0 {
		if f.Host.OS == "windows" {
			return protocol.Finding{} // without such a limit
		}
		return unknown(check, "the limit of open files cannot be read")
	}
	if limit > 1<<53 {
		return protocol.Finding{Check: check, Found: "open files are not limited"}
	}
	c := protocol.Finding{Check: check, Found: fmt.Sprintf("the limit of open files is %d, and the run needs about %d", limit, need)}
	fix := fmt.Sprintf("ulimit -n %d, or LimitNOFILE= of a systemd unit", 2*need)
	return judgeLimit(c, float64(need), float64(limit), fix, "connections that are made again may fail while the old ones are being closed")
}

// localPorts is about the ports that connections to one address begin from.
func localPorts(f *MachineFacts) protocol.Finding {
	const check = "local ports"
	limit, need := f.Host.Limits.LocalPorts, max(f.Clients, 1)
	if limit == 0 {
		return unknown(check, "the range of local ports cannot be read on "+osName(f.Host.OS))
	}
	c := protocol.Finding{Check: check, Found: fmt.Sprintf("%d local ports are free for connections to one address, and the run needs %d", limit, need)}
	const fix = `sudo sysctl -w net.ipv4.ip_local_port_range="10240 65535"`
	return judgeLimit(c, float64(need), float64(limit), fix, "a closed connection keeps its port for a minute: clients may fail to connect again")
}

// judgeLimit completes a finding about a limit on connections. near is the effect of a need that
// is within the limit and above shareOfLimits of it.
func judgeLimit(c protocol.Finding, need, limit float64, fix, near string) protocol.Finding {
	switch {
	case need > limit:
		c.Level, c.Fix = protocol.LevelError, fix
		c.Effect = "some connections cannot be made, and the run fails when it starts"
	case need > shareOfLimits*limit:
		c.Level, c.Fix = protocol.LevelNote, fix
		c.Effect = near
	}
	return c
}

// socketBuffers is about how much TCP can have on the way.
func socketBuffers(f *MachineFacts) protocol.Finding {
	const check = "socket buffers"
	h, s := &f.Host, &f.State
	if h.Limits.SendBuffer == 0 || h.Limits.RecvBuffer == 0 {
		return unknown(check, "the limits of socket buffers cannot be read on "+osName(h.OS))
	}
	c := protocol.Finding{Check: check, Found: fmt.Sprintf("TCP may buffer %s to send and %s to receive", size(uint64(h.Limits.SendBuffer)), size(uint64(h.Limits.RecvBuffer)))}
	for _, b := range []struct {
		name, key string
		asked     int64
		most      int
	}{{"--send-buffer", "net.core.wmem_max", f.SendBuffer, s.SendBufferMax}, {"--recv-buffer", "net.core.rmem_max", f.RecvBuffer, s.RecvBufferMax}} {
		if b.asked > int64(b.most) && b.most > 0 {
			c.Level = protocol.LevelWarning
			c.Found = fmt.Sprintf("%s is %s, and the kernel grants %s (%s)", b.name, units.FormatSize(b.asked), units.FormatSize(int64(b.most)), b.key)
			c.Effect = "the run uses the smaller buffer without an error"
			c.Fix = fmt.Sprintf("sudo sysctl -w %s=%d", b.key, b.asked)
			return c
		}
	}
	if least := min(h.Limits.SendBuffer, h.Limits.RecvBuffer); least < smallBuffer && f.Target && !f.local() {
		c.Level = protocol.LevelWarning
		c.Effect = "a connection over a long way carries at most a buffer in each round trip: throughput is too low"
		c.Fix = `sudo sysctl -w net.ipv4.tcp_wmem="4096 65536 4194304" net.ipv4.tcp_rmem="4096 131072 6291456"`
	}
	return c
}

// loopback is about the speed from this machine to itself. Nothing, if the target is elsewhere.
func loopback(f *MachineFacts) protocol.Finding {
	const check = "loopback"
	if f.Target && !f.local() {
		return protocol.Finding{}
	}
	if f.Window == nil || f.Window.Loopback <= 0 {
		return unknown(check, "the speed of the loopback was not measured")
	}
	c := protocol.Finding{Check: check, Found: fmt.Sprintf("one connection from this machine to itself carries %s/s", units.FormatSize(int64(f.Window.Loopback)))}
	if f.Window.Loopback < slowLoopback {
		c.Level = protocol.LevelWarning
		c.Effect = "the way to the target is the limit, not the target"
		c.Fix = "stop other programs, and look for a firewall or a proxy that inspects the loopback"
	}
	return c
}

// network is about the interface to a target on another machine. Nothing without one.
func network(f *MachineFacts) protocol.Finding {
	const check = "network"
	var away []host.Route
	for _, r := range f.Routes {
		if !r.Here {
			away = append(away, r)
		}
	}
	switch {
	case f.Target && len(f.Routes) == 0:
		return unknown(check, "the way to the target is not known")
	case len(away) == 0:
		return protocol.Finding{}
	}
	name := away[0].Interface
	for _, i := range f.Host.Network {
		if i.Name != name || i.Mbit <= 0 {
			continue
		}
		c := protocol.Finding{Check: check, Found: fmt.Sprintf("the way to the target is %s, with %d Mbit/s", name, i.Mbit)}
		if i.Mbit < slowNetwork {
			c.Level = protocol.LevelWarning
		} else if i.Mbit == slowNetwork {
			c.Level = protocol.LevelNote
		}
		if c.Level > protocol.LevelOK {
			c.Effect = fmt.Sprintf("at most about %s/s reach the target: above that the network is measured", units.FormatSize(int64(i.Mbit)*1e6/8))
			c.Fix = "use a faster network, or keep the rate below that"
		}
		return c
	}
	if name == "" {
		return unknown(check, "the interface to the target is not known")
	}
	return unknown(check, "the way to the target is "+name+", which does not report its speed (virtual interfaces do not)")
}

func synchronization(f *MachineFacts) protocol.Finding {
	const check = "time synchronization"
	s := f.State.Sync
	if !s.Known {
		return unknown(check, "whether the clock is synchronized cannot be read on "+osName(f.Host.OS))
	}
	c := protocol.Finding{Check: check, Found: fmt.Sprintf("the clock is synchronized, within %s", units.FormatDuration(s.MaxError.Round(time.Microsecond)))}
	switch {
	case !s.Synchronized:
		c.Found = "nothing synchronizes this machine's clock"
	case s.MaxError > mostClockBad:
	default:
		return c
	}
	c.Level = protocol.LevelNote
	c.Effect = "response times do not depend on it; times of events, of other machines' logs and of a fleet do, and a clock that is set during a run makes it untrusted"
	c.Fix = "start chrony or systemd-timesyncd (timedatectl set-ntp true)"
	return c
}

func calibration(f *MachineFacts) protocol.Finding {
	c := protocol.Finding{Check: "calibration", Found: "what this machine can generate was measured before"}
	if !f.Measured {
		c.Level = protocol.LevelNote
		c.Found = "what this machine can generate was never measured"
		c.Effect = "reports cannot say how far a run was from the generator's own limit"
		c.Fix = "carronade calibrate"
	}
	return c
}

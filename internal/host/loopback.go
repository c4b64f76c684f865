package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A Route is how packets reach an address.
type Route struct {
	Here      bool   // they do not leave this machine
	Interface string // that they leave by; "" if they do not
}

// RouteTo finds out how packets reach a TCP or UDP address, HOST:PORT. It asks this machine's
// tables and its resolver, and sends nothing to the address.
func RouteTo(ctx context.Context, addr string) (Route, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", addr) // for UDP, connecting sends nothing
	if err != nil {
		return Route{}, fmt.Errorf("find the route to %s: %w", addr, err)
	}
	defer conn.Close()
	from, ok := conn.LocalAddr().(*net.UDPAddr)
	to, ok2 := conn.RemoteAddr().(*net.UDPAddr)
	if !ok || !ok2 {
		return Route{}, errors.New("find the route to " + addr + ": no addresses")
	}
	if to.IP.IsLoopback() || from.IP.Equal(to.IP) {
		return Route{Here: true}, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return Route{}, fmt.Errorf("list the network interfaces: %w", err)
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(from.IP) {
				return Route{Interface: i.Name}, nil
			}
		}
	}
	return Route{}, nil
}

// LoopbackSpeed sends bytes to itself over TCP for that long, and returns how many arrived in a
// second. It uses about two processors in this second.
func LoopbackSpeed(ctx context.Context, span time.Duration) (bytesPerS float64, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("listen on the loopback: %w", err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(ctx, span+time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	sent := make(chan error, 1)
	go func() { sent <- flood(ctx, ln.Addr().String(), span) }()
	conn, err := ln.Accept()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("accept on the loopback: %w", err), <-sent)
	}
	defer conn.Close()
	stopRead := context.AfterFunc(ctx, func() { conn.Close() })
	defer stopRead()
	var n int64
	buf := make([]byte, 256<<10)
	start := time.Now()
	for {
		k, err := conn.Read(buf)
		n += int64(k)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, errors.Join(fmt.Errorf("read on the loopback: %w", err), <-sent)
		}
	}
	took := time.Since(start)
	if err := <-sent; err != nil {
		return 0, err
	}
	return float64(n) / took.Seconds(), nil
}

// flood writes to an address for that long.
func flood(ctx context.Context, addr string, span time.Duration) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("connect on the loopback: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	buf := make([]byte, 256<<10)
	for end := time.Now().Add(span); time.Now().Before(end); {
		if _, err := conn.Write(buf); err != nil {
			return fmt.Errorf("write on the loopback: %w", err)
		}
	}
	return nil
}

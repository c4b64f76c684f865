package system

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrSharedNetwork is the error of a process that has the network of this program.
var ErrSharedNetwork = errors.New("it shares the network of this machine, and what is dropped on the way to it would be dropped on the way to others")

// A PacketFilter drops packets in the network namespace of another process. It keeps that namespace
// until Close.
type PacketFilter struct {
	pid      int
	ns       *os.File
	programs []string   // iptables, and ip6tables if it works
	rules    [][]string // those that stand, with their program
}

// sharedBy are processes whose networks others use, too: this one, and the first one, whose network is
// another if this program is in a container that sees the processes of the machine.
var sharedBy = []int{os.Getpid(), 1}

// NetworkOf identifies the network namespace of a process.
func NetworkOf(pid int) (string, error) { return os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/net") }

// OpenPackets prepares to drop packets that arrive at a process. The process must have a network
// namespace of its own, and this program the rights to change it. It tries both with a rule that
// drops nothing.
func OpenPackets(pid int) (*PacketFilter, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/ns/net"
	its, err := os.Readlink(path)
	if err != nil {
		return nil, fmt.Errorf("find the network of process %d: %w", pid, errors.Unwrap(err))
	}
	for _, process := range sharedBy {
		theirs, err := NetworkOf(process)
		if err == nil && its == theirs {
			return nil, fmt.Errorf("process %d: %w", pid, ErrSharedNetwork)
		}
		if err != nil && process == os.Getpid() {
			return nil, fmt.Errorf("find the network of this program: %w", err)
		}
	}
	iptables, err := exec.LookPath("iptables")
	if err != nil {
		return nil, errors.New("iptables is not installed")
	}
	p := &PacketFilter{pid: pid, programs: []string{iptables}}
	if p.ns, err = os.Open(path); err != nil {
		return nil, fmt.Errorf("enter the network of process %d: %w", pid, errors.Unwrap(err))
	}
	if err := p.try(iptables); err != nil {
		p.ns.Close()
		return nil, err
	}
	if six, err := exec.LookPath("ip6tables"); err == nil && p.try(six) == nil {
		p.programs = append(p.programs, six)
	}
	return p, nil
}

func (p *PacketFilter) try(program string) error {
	rule := dropRule(0)
	if err := p.run(program, "-I", rule); err != nil {
		return err
	}
	return p.run(program, "-D", rule)
}

// Drop drops a share of the packets that arrive from now on, except those within the namespace. After
// an error some may be dropped until Close.
func (p *PacketFilter) Drop(share float64) error {
	rule := dropRule(share)
	for _, program := range p.programs {
		if err := p.run(program, "-I", rule); err != nil {
			return err
		}
		p.rules = append(p.rules, append([]string{program}, rule...))
	}
	return nil
}

// Close drops no more packets. After an error, another call tries again what failed; after success,
// later calls do nothing.
func (p *PacketFilter) Close() error {
	if p.ns == nil {
		return nil
	}
	var errs []error
	var left [][]string
	for _, r := range p.rules {
		if err := p.run(r[0], "-D", r[1:]); err != nil {
			errs, left = append(errs, err), append(left, r)
		}
	}
	if p.rules = left; len(left) > 0 {
		return errors.Join(errs...)
	}
	p.ns.Close()
	p.ns = nil
	return nil
}

// ByHand returns the commands that remove the rules that stand, joined for a shell; "" if none do.
func (p *PacketFilter) ByHand() string {
	all := make([]string, len(p.rules))
	for i, r := range p.rules {
		args := slices.Clone(r[1:])
		if k := slices.Index(args, "!"); k >= 0 {
			args[k] = `'!'`
		}
		all[i] = fmt.Sprintf("nsenter --net=/proc/%d/ns/net %s -D %s", p.pid, r[0], strings.Join(args, " "))
	}
	return strings.Join(all, " && ")
}

// dropRule is a rule for iptables, without the option that adds or removes it. The name of this
// process keeps it apart from rules of others.
func dropRule(share float64) []string {
	return []string{
		"INPUT", "!", "-i", "lo", "-m", "statistic", "--mode", "random", "--probability", strconv.FormatFloat(share, 'f', 9, 64),
		"-m", "comment", "--comment", "carronade-" + strconv.Itoa(os.Getpid()), "-j", "DROP",
	}
}

// run runs iptables in the namespace. The process inherits it from the thread that starts it; that
// thread ends afterwards.
func (p *PacketFilter) run(program, what string, rule []string) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter the network of the system: %w", err)
			return
		}
		cmd := exec.Command(program, append([]string{"-w", "5", what}, rule...)...) //nolint:gosec,noctx // a fixed rule; it waits 5 s for a lock
		cmd.Env = Environ()
		Apart(cmd) // a second interrupt must not end it
		out, err := cmd.CombinedOutput()
		if err != nil {
			if text := strings.TrimSpace(string(out)); text != "" {
				err = errors.New(strings.Join(strings.Fields(text), " "))
			}
			err = fmt.Errorf("run iptables in the network of the system: %w", err)
		}
		done <- err
	}()
	return <-done
}

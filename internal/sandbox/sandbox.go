// Package sandbox confines this process by the system, for the rest of its life and for the
// processes that it starts: which files it may open, to which ports it may connect, that it listens on
// none, and how much memory it takes. On Linux this is Landlock, and a limit of resources; other systems
// have nothing of the kind that a program can do by itself. It knows no rules of a server: what a process may do is given to it.
package sandbox

// Limits are what a process may do. Paths that do not exist are left out.
type Limits struct {
	Write []string // folders and files: read, write, and below them make and remove
	Read  []string // folders and files
	Run   []string // programs; if there are any, also what this one needs of the C library
	// Ports are the TCP ports that it may connect to, unless AnyPort is set.
	Ports   []uint16
	AnyPort bool
	// Memory is how many bytes it may have; 0: as many as there are. When it takes more after that, it ends with an error.
	Memory int64
	// FileSize is how large a file may become that it writes; 0: as large as there is space. Writing more is an error.
	FileSize int64
}

// A Wall is what the system of this machine can confine.
type Wall struct {
	Files   bool // which files are opened
	Ports   bool // TCP ports: connecting and listening
	Signals bool // signals to other processes
	Name    string
}

// systemFiles are what a program reads of its system: time zones, authorities of certificates, the
// resolver, and descriptions of the machine.
var systemFiles = []string{
	"/usr/share/zoneinfo", "/etc/localtime",
	"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/usr/lib/ssl",
	"/etc/resolv.conf", "/run/systemd/resolve", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services", "/etc/protocols",
	"/proc", "/sys", "/etc/os-release", "/usr/lib/os-release", "/etc/machine-id", "/dev/urandom", "/dev/random",
}

package heyapm

import (
	"fmt"
	"os"
	"strings"
)

// A secretRefs hands out references to secrets that stand on the command line: in
// variables of this process's own environment, which go with it.
type secretRefs struct{ names []string }

func newSecretRefs() *secretRefs { return &secretRefs{} }

// reference is where a secret can be read. One that is a reference already is
// returned as it is, and bare is false.
func (v *secretRefs) reference(text string) (ref string, bare bool) {
	if strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:") {
		return text, false
	}
	name := fmt.Sprintf("CARRONADE_AS_HEY_APM_%d", len(v.names)+1)
	if err := os.Setenv(name, text); err != nil {
		return "", true // it has a zero byte, which no header may hold either
	}
	v.names = append(v.names, name)
	return "env:" + name, true
}

// close forgets all of them.
func (v *secretRefs) close() {
	for _, name := range v.names {
		_ = os.Unsetenv(name)
	}
}

// beware tells how a secret is given so that nobody else reads it.
func beware(s *logger, flag string) {
	fmt.Fprintf(s.w, "warning: the secret of %s is visible in this machine's process list; give env:NAME or file:PATH instead\n", flag)
}

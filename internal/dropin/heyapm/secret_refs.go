package heyapm

import (
	"fmt"
	"os"
	"strings"
)

// secretRefs makes references to secrets of the command line. It keeps the secrets
// in environment variables of this process until close.
type secretRefs struct{ names []string }

// reference returns a reference to a secret. A text that is already a reference is
// returned unchanged, with bare false.
func (v *secretRefs) reference(text string) (ref string, bare bool) {
	if strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:") {
		return text, false
	}
	name := fmt.Sprintf("CARRONADE_AS_HEY_APM_%d", len(v.names)+1)
	if err := os.Setenv(name, text); err != nil {
		return "", true // it contains a zero byte, which is invalid in headers, too
	}
	v.names = append(v.names, name)
	return "env:" + name, true
}

// close deletes the variables.
func (v *secretRefs) close() {
	for _, name := range v.names {
		_ = os.Unsetenv(name)
	}
}

// reference returns a reference to the secret of a flag. A secret itself is visible to other
// users, and a warning says so.
func (t *heyRun) reference(flag, text string) string {
	ref, bare := t.secrets.reference(text)
	if bare {
		fmt.Fprintf(t.log.w, "warning: the secret of %s is visible in this machine's process list; give env:NAME or file:PATH instead\n", flag)
	}
	return ref
}

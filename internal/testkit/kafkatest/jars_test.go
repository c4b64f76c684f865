package kafkatest

import (
	"strings"
	"testing"
)

func TestNoJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := checkJava(); err == nil || !strings.Contains(err.Error(), "apt-get install default-jre-headless") {
		t.Errorf("got %v", err)
	}
}

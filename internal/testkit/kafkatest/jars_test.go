package kafkatest

import (
	"context"
	"strings"
	"testing"
)

func TestNoJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := checkJava(context.Background()); err == nil || !strings.Contains(err.Error(), "apt-get install default-jre-headless") {
		t.Errorf("got %v", err)
	}
}

func TestJavaVersion(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"new enough", `openjdk version "17.0.15" 2025-04-15`, ""},
		{"newer", `openjdk version "26" 2026-03-17`, ""},
		{"old", `openjdk version "11.0.2" 2019-01-15`, "too old"},
		{"very old", `java version "1.8.0_202"`, "Java 8 is too old"},
		{"none", `no java here`, "prints no version"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := checkJavaVersion(tt.text)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

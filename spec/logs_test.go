package spec

import (
	"strings"
	"testing"
)

func TestParseLogRate(t *testing.T) {
	for text, want := range map[string]LogRate{
		"": {}, "off": {}, "100 lines/s": {Lines: 100}, "64Ki bytes/s": {Bytes: 65536}, "1000 bytes/s": {Bytes: 1000},
	} {
		if got, err := ParseLogRate(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"100", "0 lines/s", "-1 lines/s", "-1Ki bytes/s", "x lines/s", "5 lines", " lines/s", "64Ki", "1Ki lines/s",
	} {
		if got, err := ParseLogRate(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestLogAnnotations(t *testing.T) {
	const containers = "[[containers]]\nname = \"web\"\nimage = \"i\"\n[[containers]]\nname = \"chatty\"\nimage = \"i\"\n"
	load := func(annotations string) (*Pod, Problems) {
		pod, problems := Parse("p.toml", []byte("name = \"p\"\n[annotations]\n"+annotations+containers))
		return pod, problems
	}
	pod, problems := load("\"podstead.io/log-driver\" = \"memory\"\n\"podstead.io/log-rate-limit\" = \"100 " +
		"lines/s\"\n\"log-rate-limit.podstead.io/chatty\" = \"off\"\n")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	web, ok1 := pod.LogRateOf("web")
	chatty, ok2 := pod.LogRateOf("chatty")
	if pod.LogDriverOf() != LogMemory || web != (LogRate{Lines: 100}) || chatty != (LogRate{}) || !ok1 || !ok2 {
		t.Errorf("driver %q, rates %+v %v, %+v %v", pod.LogDriverOf(), web, ok1, chatty, ok2)
	}
	if r, ok := (&Pod{}).LogRateOf("web"); ok || r != (LogRate{}) || (&Pod{}).LogDriverOf() != "" {
		t.Errorf("a pod without annotations has %+v, %v", r, ok)
	}
	for annotation, want := range map[string]string{
		`"podstead.io/log-driver" = "syslog"`:              "supported values: file, memory, journald",
		`"podstead.io/log-rate-limit" = "fast"`:            "must be off or a rate greater than 0",
		`"log-rate-limit.podstead.io/web" = "0 lines/s"`:   "must be off or a rate greater than 0",
		`"log-rate-limit.podstead.io/none" = "10 lines/s"`: `Not found: container "none"`,
	} {
		if _, problems := load(annotation + "\n"); len(problems) != 1 || !strings.Contains(problems[0].Message, want) {
			t.Errorf("%s: %v, want %q", annotation, problems, want)
		}
	}
}

// TestDefaultLogDriver: the driver of a pod file takes precedence.
func TestDefaultLogDriver(t *testing.T) {
	for _, test := range []struct {
		annotations map[string]string
		driver      LogDriver
		want        LogDriver
	}{
		{nil, "", ""},
		{nil, LogJournald, LogJournald},
		{map[string]string{"a": "b"}, LogJournald, LogJournald},
		{map[string]string{LogDriverAnnotation: "memory"}, LogJournald, LogMemory},
	} {
		p := Pod{Annotations: test.annotations}
		p.DefaultLogDriver(test.driver)
		if got := p.LogDriverOf(); got != test.want {
			t.Errorf("annotations %v, driver %q: got %q, want %q", test.annotations, test.driver, got, test.want)
		}
	}
}

package spec

import (
	"strings"
	"testing"
)

func TestJobProblems(t *testing.T) {
	job := func(field string) string {
		return strings.Replace(nightly, "schedule = { cron = \"0 3 * * *\"%s }", field, 1)
	}
	checkRules(t, []rule{
		{job("backoffLimit = -1"), "backoffLimit", "greater than or equal to 0"},
		{job("backoffLimit = 1.5"), "backoffLimit", "must be an integer"},
		{pod("backoffLimit = 1"), "backoffLimit", `requires restartPolicy "OnFailure" or "Never"`},
		{job("ttlSecondsAfterFinished = -1"), "ttlSecondsAfterFinished", "greater than or equal to 0"},
		{pod("ttlSecondsAfterFinished = 1"), "ttlSecondsAfterFinished", `requires restartPolicy "OnFailure" or "Never"`},
	})
}

// TestRetries: a pod that is retried has the rule that restarts all containers, in the containers without a policy of their own.
func TestRetries(t *testing.T) {
	const containers = `
[[initContainers]]
name = "sidecar"
image = "a"
restartPolicy = "Always"
[[initContainers]]
name = "init"
image = "a"
[[containers]]
name = "main"
image = "a"
[[containers]]
name = "own"
image = "a"
restartPolicy = "OnFailure"
`
	for _, row := range []struct {
		fields string
		rules  int
	}{
		{"restartPolicy = \"Never\"\nbackoffLimit = 1", 2},
		{"restartPolicy = \"Never\"\nbackoffLimit = 0", 0},
		{"restartPolicy = \"Never\"", 0},
		{"restartPolicy = \"OnFailure\"\nbackoffLimit = 1", 0},
	} {
		p, problems := Parse("web.toml", []byte(row.fields+containers))
		if p == nil {
			t.Fatal(problems)
		}
		with := map[string]bool{}
		for c := range p.EveryContainer() {
			if len(c.RestartPolicyRules) > 0 {
				with[c.Name] = true
			}
		}
		if len(with) != row.rules || row.rules > 0 && (!with["init"] || !with["main"]) || p.Retries() != (row.rules > 0) {
			t.Errorf("%s: rules of %v", row.fields, with)
		}
	}
}

// TestManifestsOfJobs: pod files with fields of a Job are written as Jobs, and as CronJobs with a schedule.
func TestManifestsOfJobs(t *testing.T) {
	const container = "\n[[containers]]\nname = \"a\"\nimage = \"b\"\nports = [{ containerPort = 80 }]\n"
	for _, row := range []struct{ name, fields, want, warning string }{
		{
			name: "a limit",
			fields: "labels.app = \"x\"\nrestartPolicy = \"OnFailure\"\nactiveDeadlineSeconds = 60\nbackoffLimit = 2\n" +
				"ttlSecondsAfterFinished = 1.5",
			want: `
apiVersion: batch/v1
kind: Job
metadata:
  name: web
spec:
  activeDeadlineSeconds: 60
  backoffLimit: 2
  ttlSecondsAfterFinished: 2
  template:
    metadata:
      labels:
        app: x
    spec:
      restartPolicy: OnFailure
`, warning: "a cluster has whole seconds",
		},
		{
			name:   "a schedule, without a limit of restarts",
			fields: "restartPolicy = \"OnFailure\"\nschedule = { cron = \"0 3 * * *\", timeZone = \"UTC\", suspend = true }",
			want: `
apiVersion: batch/v1
kind: CronJob
metadata:
  name: web
spec:
  schedule: "0 3 * * *"
  timeZone: UTC
  suspend: true
  jobTemplate:
    spec:
      backoffLimit: 2147483647
      template:
        spec:
          restartPolicy: OnFailure
`,
		},
		{
			name: "a schedule, without restarts", fields: "restartPolicy = \"Never\"\nschedule = { cron = \"@daily\" }",
			want: "backoffLimit: 0\n", warning: "a cluster uses the time zone of its kube-controller-manager",
		},
	} {
		text := []byte("name = \"web\"\n" + row.fields + container)
		out, problems := Options{}.Manifests([]InputFile{{"/a/web.toml", text}}, false)
		if !strings.Contains("\n"+string(out), row.want) || !strings.Contains(report(problems.Warnings()), row.warning) {
			t.Errorf("%s: %v\n%s\nwant\n%s", row.name, problems, out, row.want)
		}
		checkObjects(t, row.name, out)
		if row.name != "a schedule, without restarts" { // it is read with the backoffLimit 0, which means the same
			checkRoundTrip(t, "/a/web.toml", text)
		}
		if strings.Contains(row.name, "schedule") == strings.Contains(string(out), "kind: Service") {
			t.Errorf("%s: Services are for pods that run at all times\n%s", row.name, out)
		}
	}
	text := "restartPolicy = \"Never\"\nschedule = { cron = \"@daily\", jitterSeconds = 60 }" + container
	if out, problems := (Options{}).Manifests([]InputFile{{"/a/web.toml", []byte(text)}}, false); out != nil ||
		!strings.Contains(report(problems), "schedule.jitterSeconds: not supported: runs of a CronJob have no delay") {
		t.Errorf("jitter: %v\n%s", problems, out)
	}
}

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

// TestJobTableProblems: the rules of batch/v1 for a Job.
func TestJobTableProblems(t *testing.T) {
	table := func(fields string) string {
		return strings.Replace(nightly, "schedule = { cron = \"0 3 * * *\"%s }", "job = { name = \"sum\""+fields+" }", 1)
	}
	job := func(fields string) string {
		if !strings.Contains(fields, "completions") && !strings.Contains(fields, "parallelism") {
			fields += ", parallelism = 1"
		}
		return table(fields)
	}
	success := func(rule string) string { return job(", completions = 5, successPolicy.rules = [" + rule + "]") }
	failure := func(rule string) string { return job(", podFailurePolicy.rules = [" + rule + "]") }
	counted := failure("{ action = \"Count\", onExitCodes = { operator = \"In\", values = [1] } }")
	checkRules(t, []rule{
		{strings.Replace(job(""), "name = \"sum\"", "index = 0", 1), "job.name", "Required value"},
		{strings.Replace(job(""), "\"sum\"", "\"a_b\"", 1), "job.name", "RFC 1123"},
		{job(", index = -1"), "job.index", "greater than or equal to 0"},
		{job(", index = 2, completions = 2"), "job.index", "must be less than completions, which is 2"},
		{job(", completions = 0"), "job.completions", "greater than or equal to 1"},
		{job(", parallelism = -1"), "job.parallelism", "greater than or equal to 0"},
		{job(", backoffLimit = -1"), "job.backoffLimit", "greater than or equal to 0"},
		{table(""), "job", "must have completions or parallelism"},
		{job(", backoffLimitPerIndex = 1"), "job.backoffLimitPerIndex", "requires completions"},
		{
			strings.Replace(counted, "\"Never\"", "\"OnFailure\"", 1), "job.podFailurePolicy", `requires restartPolicy "Never"`,
		},
		{
			failure("{ action = \"FailIndex\", onExitCodes = { operator = \"In\", values = [1] } }"),
			"job.podFailurePolicy.rules[0].action", "requires backoffLimitPerIndex",
		},
		{job(", completions = 1, backoffLimitPerIndex = -1"), "job.backoffLimitPerIndex", "greater than or equal to 0"},
		{job(", maxFailedIndexes = 1"), "job.maxFailedIndexes", "requires backoffLimitPerIndex"},
		{
			job(", completions = 2, backoffLimitPerIndex = 1, maxFailedIndexes = 3"), "job.maxFailedIndexes",
			"less than or equal to completions",
		},
		{"backoffLimit = 1\n" + job(""), "backoffLimit", "must not be set with job"},
		{"schedule.cron = \"@daily\"\n" + job(""), "job", "must not be set with schedule"},
		{pod("job = { name = \"sum\", parallelism = 1 }"), "job", `requires restartPolicy "OnFailure" or "Never"`},
		{job(", successPolicy.rules = [{ succeededCount = 1 }]"), "job.successPolicy", "requires completions"},
		{success(""), "job.successPolicy", "at least one rule must be specified"},
		{success(strings.Repeat("{ succeededCount = 1 },", 21)), "job.successPolicy.rules", "must have at most 20 items"},
		{success("{}"), "job.successPolicy.rules[0]", "at least one of succeededCount or succeededIndexes"},
		{success("{ succeededCount = 6 }"), "job.successPolicy.rules[0].succeededCount", "5 (the number of specified completions)"},
		{
			success("{ succeededCount = 3, succeededIndexes = \"1-2\" }"), "job.successPolicy.rules[0].succeededCount",
			"2 (the number of indexes in succeededIndexes)",
		},
		{success("{ succeededIndexes = \"5\" }"), "job.successPolicy.rules[0].succeededIndexes", "too large index: \"5\""},
		{
			success("{ succeededIndexes = \"2,1\" }"), "job.successPolicy.rules[0].succeededIndexes",
			"non-increasing order, previous: 2, current: 1",
		},
		{success("{ succeededIndexes = \"2-2\" }"), "job.successPolicy.rules[0].succeededIndexes", "non-increasing order"},
		{success("{ succeededIndexes = \"1-2-3\" }"), "job.successPolicy.rules[0].succeededIndexes", "at most two parts"},
		{success("{ succeededIndexes = \"x\" }"), "job.successPolicy.rules[0].succeededIndexes", "cannot convert string to integer"},
		{failure(""), "job.podFailurePolicy", "Required value"},
		{failure("{ onExitCodes = { operator = \"In\", values = [1] } }"), "job.podFailurePolicy.rules[0].action", "Required value"},
		{failure("{ action = \"FailJob\" }"), "job.podFailurePolicy.rules[0].onExitCodes", "Required value"},
		{
			failure("{ action = \"Fail\", onExitCodes = { operator = \"In\", values = [1] } }"), "job.podFailurePolicy.rules[0].action",
			"supported values",
		},
		{
			failure("{ action = \"FailJob\", onExitCodes = { operator = \"Is\", values = [1] } }"),
			"job.podFailurePolicy.rules[0].onExitCodes.operator", "supported values",
		},
		{
			failure("{ action = \"FailJob\", onExitCodes = { operator = \"In\" } }"),
			"job.podFailurePolicy.rules[0].onExitCodes.values", "Required value",
		},
		{
			failure("{ action = \"FailJob\", onExitCodes = { operator = \"In\", values = [1, 0] } }"),
			"job.podFailurePolicy.rules[0].onExitCodes.values[1]", "must not be 0 for the In operator",
		},
		{
			failure("{ action = \"FailJob\", onExitCodes = { containerName = \"x\", operator = \"In\", values = [1] } }"),
			"job.podFailurePolicy.rules[0].onExitCodes.containerName", "must be the name of a container",
		},
	})
}

// TestJobLimits: the limit of each pod is that of its Job.
func TestJobLimits(t *testing.T) {
	for fields, want := range map[string]int32{
		"": 6, "backoffLimit = 0": 0, "backoffLimitPerIndex = 2": 2, "backoffLimit = 1\njob.backoffLimitPerIndex = 2": 1,
	} {
		text := "restartPolicy = \"Never\"\njob.name = \"sum\"\njob.completions = 1\n"
		if fields != "" {
			text += "job." + fields + "\n"
		}
		p, problems := Parse("web.toml", []byte(text+"[[containers]]\nname = \"a\"\nimage = \"b\"\n"))
		if p == nil {
			t.Fatal(problems)
		}
		if *p.BackoffLimit != want || p.Retries() != (want > 0) {
			t.Errorf("%s: backoffLimit %d, want %d", fields, *p.BackoffLimit, want)
		}
	}
}

// TestParseIndexes: intervals of indexes.
func TestParseIndexes(t *testing.T) {
	list, err := ParseIndexes("0-2,5,7-9", 10)
	if err != nil || list.Len() != 7 {
		t.Fatal(list, err)
	}
	for index := range int32(11) {
		if want := index != 3 && index != 4 && index != 6 && index != 10; list.Contains(index) != want {
			t.Errorf("%d: %v", index, !want)
		}
	}
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

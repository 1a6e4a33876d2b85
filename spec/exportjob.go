package spec

import (
	"slices"
)

// isJob reports whether a cluster needs a Job for the pod.
func (p *Pod) isJob() bool {
	return p.Schedule != nil || p.BackoffLimit != nil || p.TTLSecondsAfterFinished != nil
}

// asJob returns a pod file as a Job or, with a schedule, as a CronJob. The values are shared.
func asJob(p *exportedPod) *node {
	var schedule *node
	of, job, metadata, pod := keyedTable("metadata"), keyedTable("spec"), keyedTable("metadata"), keyedTable("spec")
	if p.root.child("backoffLimit") == nil {
		limit := noLimit
		switch {
		case p.pod.BackoffLimit != nil: // of its Job
			limit = int64(*p.pod.BackoffLimit)
		case p.pod.RestartPolicy == RestartNever:
			limit = 0
		}
		job.items = append(job.items, keyed("backoffLimit", node{kind: kindInteger, value: limit}))
	}
	for _, c := range p.root.items {
		switch {
		case c.key == "name":
			of.items = append(of.items, c)
		case c.key == "schedule":
			schedule = c
		case c.key == "backoffLimit" || c.key == "ttlSecondsAfterFinished" || c.key == "activeDeadlineSeconds":
			job.items = append(job.items, c)
		case slices.Contains(metadataKeys, c.key):
			metadata.items = append(metadata.items, c)
		default:
			pod.items = append(pod.items, c)
		}
	}
	template := keyedTable("template")
	if len(metadata.items) > 0 {
		template.items = append(template.items, metadata)
	}
	template.items = append(template.items, pod)
	job.items = append(job.items, template)
	object := func(kind string, spec *node) *node {
		return keyedTable("", keyedText("apiVersion", "batch/v1"), keyedText("kind", kind), of, spec)
	}
	if schedule == nil {
		return object("Job", job)
	}
	cron := keyedTable("spec")
	for _, c := range schedule.items {
		key := c.key
		if key == "cron" {
			key = "schedule"
		}
		cron.items = append(cron.items, keyed(key, *c))
	}
	cron.items = append(cron.items, keyedTable("jobTemplate", job))
	return object("CronJob", cron)
}

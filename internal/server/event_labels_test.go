package server_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor"
)

// podsOf returns the pods of the events that a query selects.
func (d *testDaemon) podsOf(t *testing.T, q client.EventQuery) []string {
	t.Helper()
	var names []string
	for e, err := range d.client.Events(t.Context(), &q) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Pod)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// labelled requests a pod that runs, with the label app.
func labelled(name, label string) api.CreateRequest {
	return file(name, "labels.app = \""+label+"\"\n"+app("main", "trap 'exit 0' TERM; sleep 1000 & wait"))
}

// TestEventsOfLabels checks that a label selector selects the events of the pods that have the labels, and none of deleted pods.
func TestEventsOfLabels(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	for name, label := range map[string]string{"web": "shop", "db": "shop", "mail": "post"} {
		d.await(t, d.create(t, labelled(name, label)).Metadata.UID, "ready pod", ready)
	}
	expect := func(q client.EventQuery, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, d.podsOf(t, q)); diff != "" {
			t.Errorf("events of %+v (-want +got):\n%s", q, diff)
		}
	}
	expect(client.EventQuery{Labels: "app=shop"}, "db", "web")
	expect(client.EventQuery{Labels: "app!=shop"}, "mail")
	expect(client.EventQuery{Labels: "app in (shop, post),app"}, "db", "mail", "web")
	expect(client.EventQuery{Labels: "app=none"})
	expect(client.EventQuery{Labels: "app=shop", Pod: "db"}, "db")
	expect(client.EventQuery{Labels: "app=shop", Pod: "mail"})
	expect(client.EventQuery{Labels: "app=shop", Since: time.Now().Add(time.Hour)})
	expect(client.EventQuery{}, "db", "mail", "web")

	before, _ := d.supervisor.Pod("db")
	if err := d.supervisor.Stop(t.Context(), "db", supervisor.StopOptions{Grace: new(time.Duration), Delete: true}); err != nil {
		t.Fatal(err)
	}
	d.await(t, before.Facts.UID, "deleted pod", deleted)
	expect(client.EventQuery{Labels: "app=shop"}, "web")
	expect(client.EventQuery{Labels: "app!=shop"}, "mail")

	// The next pod of the name has other labels. The events of the pod before it do not match.
	d.await(t, d.create(t, labelled("db", "new")).Metadata.UID, "ready pod", ready)
	for e, err := range d.client.Events(t.Context(), &client.EventQuery{Labels: "app=new"}) {
		if err != nil || e.UID == before.Facts.UID {
			t.Errorf("%+v, %v, want events of the new pod", e, err)
		}
	}
	for _, err := range d.client.Events(t.Context(), &client.EventQuery{Labels: "a=b=c"}) {
		if !isStatus(err, http.StatusBadRequest) {
			t.Errorf("invalid selector: %v, want 400", err)
		}
	}
}

// TestFollowedEventsOfLabels checks that followed events of a pod that was selected are sent until it is deleted.
func TestFollowedEventsOfLabels(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.await(t, d.create(t, labelled("mail", "post")).Metadata.UID, "ready pod", ready)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	d.await(t, d.create(t, labelled("web", "shop")).Metadata.UID, "ready pod", ready)
	started := false
	for e, err := range d.client.Events(ctx, &client.EventQuery{Labels: "app=shop", Follow: true}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Pod != "web":
			t.Fatalf("event of another pod: %+v", e)
		case e.Kind == "ContainerStarted":
			started = true
			stop := supervisor.StopOptions{Grace: new(time.Duration), Delete: true}
			for _, name := range []string{"mail", "web"} {
				if err := d.supervisor.Stop(ctx, name, stop); err != nil {
					t.Fatal(err)
				}
			}
		case started && e.Kind == "ContainerKilled" || e.Kind == "PodStopped" || e.Kind == "PodSucceeded":
			return
		}
	}
	t.Fatal("the events ended")
}

// TestFinalEventsOfLabels checks that the labels of a deleted pod count that a client still waits for.
func TestFinalEventsOfLabels(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	q := labelled("web", "shop")
	q.Session = "session"
	uid := d.create(t, q).Metadata.UID
	d.await(t, uid, "ready pod", ready)
	if err := d.supervisor.Stop(t.Context(), "web", supervisor.StopOptions{Grace: new(time.Duration), Delete: true}); err != nil {
		t.Fatal(err)
	}
	d.await(t, uid, "deleted pod", deleted)
	if got := d.podsOf(t, client.EventQuery{Labels: "app=shop"}); !slices.Equal(got, []string{"web"}) {
		t.Errorf("events of %q, want web", got)
	}
}

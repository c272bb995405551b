package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"david/internal/kube"
	"david/internal/live"
	"david/internal/podrun"
)

func TestClusterCodes(t *testing.T) {
	for want, list := range map[int][]error{
		exitUsage:  {kube.ErrConfig, kube.ErrNotFound, kube.ErrForeign, kube.ErrInvalid, podrun.ErrPod},
		exitTarget: {kube.ErrUnreachable, kube.ErrForbidden, kube.ErrFailed, &kube.Failure{Reason: "Evicted"}},
		exitFailed: {errors.New("something else")},

		exitInterrupted: {live.ErrInterrupted},
	} {
		for _, err := range list {
			if got := exitCode(fmt.Errorf("x: %w", err)); got != want {
				t.Errorf("%v: exit code %d, want %d", err, got, want)
			}
		}
	}
	if got := exitCode(fmt.Errorf("x: %w", &podrun.ClientError{Code: exitInvalid})); got != exitInvalid {
		t.Errorf("a client's error: exit code %d", got)
	}
}

// TestPodPassword finds where the password is, never what it is.
func TestPodPassword(t *testing.T) {
	server := corev1.Container{Env: []corev1.EnvVar{{Name: "MYSQL_ROOT_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "root"}, Key: "pw"}}}}}
	for _, c := range []struct {
		flags       podFlags
		server      corev1.Container
		secret, key string
		bad         bool
	}{
		{podFlags{user: "root"}, server, "root", "pw", false},
		{podFlags{user: "root", secret: "mine"}, server, "mine", "password", false},
		{podFlags{user: "bench", secret: "mine:k"}, corev1.Container{}, "mine", "k", false},
		{podFlags{user: "bench"}, server, "", "", true},
		{podFlags{user: "root"}, corev1.Container{}, "", "", true},
		{podFlags{user: "root", secret: ":k"}, server, "", "", true},
		{podFlags{user: "root", secret: "n:"}, server, "", "", true},
	} {
		secret, key, err := c.flags.password(c.server)
		if secret != c.secret || key != c.key || (err != nil) != c.bad {
			t.Errorf("%+v: %s, %s, %v", c.flags, secret, key, err)
		}
	}
}

// TestWaited: where david gave up waiting, the flag that waits longer is named; where waiting is of no use it
// is not.
func TestWaited(t *testing.T) {
	f := podFlags{patience: 2 * time.Minute}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("x: %w", &kube.Failure{Object: "pod db/mysql-0", Reason: "NotReady", Waited: true}), "x: pod db/mysql-0: NotReady; david waited for 2m0s, and --start-timeout waits longer"},
		{&kube.Failure{Object: "pod db/mysql-0", Reason: "CrashLoopBackOff"}, "pod db/mysql-0: CrashLoopBackOff"},
		{kube.ErrNotFound, kube.ErrNotFound.Error()},
	} {
		got := f.waited(c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) || exitCode(got) != exitCode(c.err) {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
	if f.waited(nil) != nil {
		t.Error("an error of nothing")
	}
}

func TestPodArgs(t *testing.T) {
	f := benchFlags{loadFlags: loadFlags{workload: "oltp_read_write", tables: 2, tableSize: 10, threads: "1,4", time: time.Minute, warmup: 5 * time.Second, randType: "uniform"}, repeat: 3, force: true}
	got := strings.Join(podArgs(f), " ")
	want := "bench --relay -v --workload oltp_read_write --rand-type uniform --threads 1,4 --tables=2 --table-size=10 --time=1m0s --warmup=5s --rate=0 --repeat=3 --force"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for deadline, want := range map[time.Duration]string{statementDeadline: "", 20 * time.Second: "--statement-deadline=20s"} {
		f.statement = deadline
		if got := strings.Join(f.deadlineArgs(), " "); got != want {
			t.Errorf("%s: %q, want %q", deadline, got, want)
		}
	}
}

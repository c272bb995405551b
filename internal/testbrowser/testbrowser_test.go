package testbrowser

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestAxe: the library is the one that README.md names.
func TestAxe(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(axe))
	if !strings.Contains(string(readme), hex.EncodeToString(sum[:])) {
		t.Errorf("axe.min.js has the SHA-256 %x, which README.md does not name", sum)
	}
}

// TestThreadsEnd: a browser outlives the threads of other goroutines. Tied to a thread that it shares, it does not every second time.
func TestThreadsEnd(t *testing.T) {
	for range 5 {
		t.Run("", func(t *testing.T) {
			b := New(t)
			endThreads(50) // more than there are idle ones
			var two int
			if b.Eval(t, `1+1`, &two); two != 2 {
				t.Errorf("the browser says that 1+1 is %d", two)
			}
		})
	}
}

// endThreads has n goroutines, each on a thread of its own, end with their threads.
func endThreads(n int) {
	var locked, ended sync.WaitGroup
	all := make(chan struct{})
	locked.Add(n)
	for range n {
		ended.Go(func() {
			runtime.LockOSThread() // never unlocked
			locked.Done()
			<-all
		})
	}
	locked.Wait()
	close(all)
	ended.Wait()
}

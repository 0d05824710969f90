// Pause is the process of a Pod's sandbox: it holds the Pod's namespaces until it is terminated.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGINT, syscall.SIGTERM)
	<-terminated
}

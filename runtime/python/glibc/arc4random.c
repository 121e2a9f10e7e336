/* arc4random() for LLVM and the C++ library inside the Python package: glibc has the function from 2.36 on, and the
 * package is for 2.34. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* A random number of the kernel; the caller's errno stays. */
uint32_t arc4random(void)
{
	uint32_t number;
	int before = errno;
	while (getrandom(&number, sizeof number, 0) != sizeof number)
		if (errno != EINTR)
			abort();
	errno = before;
	return number;
}

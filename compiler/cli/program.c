#include "cli/cli.h"

int main(int argc, char **argv)
{
	return tlc_main(argc, argv);
}
